package runbook

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// account is a user that a script creates in MongoDB.
type account struct {
	name, password string
	roles          string // as the script has them
}

var (
	createUser = regexp.MustCompile(`(?s)createUser\(\s*\{(.*?)\}\s*\)`)
	userField  = regexp.MustCompile(`["']?user["']?\s*:\s*["']([^"']+)["']`)
	pwdField   = regexp.MustCompile(`["']?pwd["']?\s*:\s*["']([^"']+)["']`)
	rolesField = regexp.MustCompile(`(?s)["']?roles["']?\s*:\s*(\[.*\])`)
	adminRole  = regexp.MustCompile(`["'](root|userAdmin|userAdminAnyDatabase)["']`)
)

// readAccounts reads the users that scripts create.
func readAccounts(script string) (list []account) {
	for _, m := range createUser.FindAllStringSubmatch(script, -1) {
		name, pwd, roles := userField.FindStringSubmatch(m[1]), pwdField.FindStringSubmatch(m[1]),
			rolesField.FindStringSubmatch(m[1])
		if name == nil || pwd == nil || roles == nil {
			continue
		}
		list = append(list, account{name[1], pwd[1], strings.Join(strings.Fields(roles[1]), " ")})
	}
	return list
}

// mounted are the ConfigMaps that a component mounts.
func (s *system) mounted(component string) (names []string) {
	d, ok := s.deployment(component)
	if !ok {
		return nil
	}
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.ConfigMap != nil {
			names = append(names, v.ConfigMap.Name)
		}
	}
	return names
}

// configuration reads the ConfigMaps that a component mounts: by name and file.
func (i *investigation) configuration(thought, component string) map[string]map[string]string {
	names := i.mounted(component)
	if len(names) == 0 {
		return nil
	}
	text := i.ask(thought, fmt.Sprintf("kubectl get configmap -n %s %s -o json | brief configmaps", i.namespace,
		strings.Join(names, " ")))
	maps := map[string]map[string]string{}
	for line := range strings.Lines(text) {
		var m struct {
			Name string            `json:"name"`
			Data map[string]string `json:"data"`
		}
		if json.Unmarshal([]byte(line), &m) == nil && m.Name != "" {
			maps[m.Name] = m.Data
		}
	}
	return maps
}

// fixUsers sees to it that a MongoDB server has the users its own scripts create, with the roles they
// give them.
func (i *investigation) fixUsers(f finding, because string) {
	var accounts []account
	for _, data := range i.configuration(because+
		" Which users should there be? The scripts that set the database up say so.", f.component) {
		for _, script := range data {
			accounts = append(accounts, readAccounts(script)...)
		}
	}
	for _, admin := range accounts {
		if !adminRole.MatchString(admin.roles) {
			continue
		}
		var js strings.Builder
		for _, a := range accounts {
			if a.name == admin.name {
				continue
			}
			fmt.Fprintf(&js, "if (db.getUser(%[1]q) == null) { db.createUser({user: %[1]q, pwd: %[2]q, roles: "+
				"%[3]s}) } else { db.grantRolesToUser(%[1]q, %[3]s) }; ", a.name, a.password, a.roles)
		}
		if js.Len() == 0 {
			continue
		}
		out := i.shell(fmt.Sprintf("As %s I can manage users: I create those that are missing, and give them the "+
			"roles they should have.", admin.name),
			fmt.Sprintf("kubectl exec -n %s deployment/%s -- mongosh admin --quiet -u %s -p %s "+
				"--authenticationDatabase admin --eval %s", i.namespace, f.component, admin.name, admin.password,
				shellQuote(strings.TrimSpace(js.String()))), 30)
		if !speaksOfLogin.MatchString(out) {
			return
		}
	}
}

// fixTLS has a MongoDB server take plain connections beside encrypted ones.
func (i *investigation) fixTLS(f finding, because string) {
	d, ok := i.deployment(f.component)
	if !ok {
		return
	}
	for name, data := range i.configuration(because+" How is it configured?", f.component) {
		for _, text := range data {
			if strings.Contains(text, "requireTLS") || strings.Contains(text, "requireSSL") {
				i.change("Its configuration demands TLS, which its clients do not speak. I have it allow TLS rather "+
					"than demand it, and restart it.",
					"kubectl get configmap "+name+
						` -n %[1]s -o json | sed -e 's/requireTLS/allowTLS/g' -e 's/requireSSL/allowSSL/g' | kubectl replace -f - && kubectl rollout restart deployment/%[2]s -n %[1]s`, f.component)
				return
			}
		}
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		if strings.Contains(strings.Join(append(c.Command, c.Args...), " "), "requireTLS") {
			i.change("Its arguments demand TLS, which its clients do not speak. I have it allow TLS rather "+
				"than demand it.",
				"kubectl get deployment %[2]s -n %[1]s -o json | sed -e 's/requireTLS/allowTLS/g' | "+
					"kubectl replace -f -", f.component)
			return
		}
	}
}

// shellQuote makes one word of a text.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
