package hierarchy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// This file is about chores beyond a service's own state: to rotate a login, to keep a client out, to add a service.
// What is asked is told over several sentences.

// The kinds of chores, which are steps.
const (
	rotateStep = "rotate" // the login to the service, a store: Name is a Secret, Value the client
	blockStep  = "block"  // whoever floods the service, from the namespace Name
	addStep    = "add"    // a service Name like this one, with Replicas of the image Value, on Port
)

// What the words of chores look like.
var (
	rotateWords = regexp.MustCompile(`(?i)\b(?:rotate|renew|replace|change)\b[^.]*\b(?:login|password|credentials?)\b[^.]*`)
	secretWords = regexp.MustCompile(`(?i)\bSecret ([^\s,.]+)`)
	storeName   = regexp.MustCompile(`(?i)(?:^|-)(?:db|database|mysql|store)(?:-|$)`)

	floodWords     = regexp.MustCompile(`(?i)[^.]*\b(?:floods?|flooding|hammers?|overloads?|swamps?)\b[^.]*`)
	namespaceWords = regexp.MustCompile(`(?i)\bnamespace ([^\s,.]+)`)
	blockWords     = regexp.MustCompile(`(?i)\b(?:block|keep|shut) (?:it|that one|that client|the client)\b`)

	addWords    = regexp.MustCompile(`(?i)\b(?:add|create|set up) a(?:nother)? service\b.*?\b(?:called|named) ([^\s:,.]+)`)
	likeWords   = regexp.MustCompile(`(?i)\b(?:as|like) ([^\s,.]+)(?: does\b|[,.])`)
	amountWords = regexp.MustCompile(`(?i)\b(\d+) (?:replicas|pods) of (?:the image )?([^\s,]+)`)
	portWords   = regexp.MustCompile(`(?i)\bport (\d+)`)
)

// readChores reads chores out of what is asked, of services that there are.
func (o *order) readChores(ask string, services []string) {
	add := func(s step) {
		if slices.Contains(services, s.Service) {
			o.Steps = append(o.Steps, s)
			o.add([]string{s.Service})
		}
	}
	secret := secretWords.FindStringSubmatch(ask)
	if who := mentioned(rotateWords.FindString(ask), services); secret != nil && len(who) == 2 {
		client, store := who[0], who[1]
		if storeName.MatchString(client) && !storeName.MatchString(store) {
			client, store = store, client
		}
		add(step{Kind: rotateStep, Service: store, Name: secret[1], Value: client})
	}
	flood := floodWords.FindString(ask)
	from, who := namespaceWords.FindStringSubmatch(flood), mentioned(flood, services)
	if from != nil && len(who) > 0 && blockWords.MatchString(ask) {
		add(step{Kind: blockStep, Service: who[0], Name: from[1]})
	}
	name, amount := addWords.FindStringSubmatch(ask), amountWords.FindStringSubmatch(ask)
	if port := portWords.FindStringSubmatch(ask); name != nil && amount != nil && port != nil {
		for _, like := range likeWords.FindAllStringSubmatch(ask, -1) {
			if slices.Contains(services, like[1]) {
				add(step{
					Kind: addStep, Service: like[1], Name: name[1], Value: amount[2], Replicas: number(amount[1]),
					Port: number(port[1]),
				})
				break
			}
		}
	}
}

// chore does one, and tells.
func (r *ruleMind) chore(s step) string {
	ns := r.g.Namespace
	thought, command, done := "", "", ""
	switch s.Kind {
	case rotateStep:
		thought = fmt.Sprintf("I make another login, put it into the Secret %s, have %s start anew with it, and only "+
			"then take the old one away: so nobody is shut out meanwhile.", s.Name, s.Value)
		command = rotate(ns, r.name, s.Name, s.Value)
		done = fmt.Sprintf("The old login is gone; %s has another one, from the Secret %s.", s.Value, s.Name)
	case blockStep:
		thought = fmt.Sprintf("Who asks most has the longest log of the last seconds. Of those in %s, I let all but "+
			"that one in, and everybody else as before.", s.Name)
		command = keepOut(ns, r.name, s.Name)
		done = "A NetworkPolicy keeps out whoever asked most, by the labels of its pods."
	case addStep:
		thought = fmt.Sprintf("%s gets what I have, with labels of its own, so that none of us answers for the other; "+
			"its Service comes when its pods are ready.", s.Name)
		command = addLike(ns, r.name, s)
		done = fmt.Sprintf("%s is there, with %s of %s.", s.Name, plural(s.Replicas, "pod"), s.Value)
	}
	text := r.shell(thought, command)
	if strings.Contains(text, "[exit status ") {
		return "That did not work: " + strings.TrimSpace(text)
	}
	return done
}

// rotate gives a client of a MySQL server another login. For a while both are good.
func rotate(ns, store, secret, client string) string {
	sql := func(statement string) string {
		return fmt.Sprintf(`kubectl exec deployment/%s -n %s -- sh -c `+
			`"mysql -u root -p\"\$MYSQL_ROOT_PASSWORD\" -e \"%s\""`, store, ns, statement)
	}
	return strings.Join([]string{
		fmt.Sprintf("old=$(kubectl get secret %s -n %s -o jsonpath='{.data.username}' | base64 -d)", secret, ns),
		"new=$(head -c 18 /dev/urandom | sha256sum | cut -c 1-24)",
		"user=" + client + "_$(echo $new | cut -c 1-4)",
		sql("CREATE USER '$user' IDENTIFIED BY '$new'"),
		fmt.Sprintf(`kubectl patch secret %s -n %s -p "{\"stringData\": {\"username\": \"$user\", \"password\": `+
			`\"$new\"}}"`, secret, ns),
		fmt.Sprintf("kubectl rollout restart deployment/%[1]s -n %[2]s && "+
			"kubectl rollout status deployment/%[1]s -n %[2]s --timeout=90s", client, ns),
		sql("DROP USER '$old'"),
	}, " && ")
}

// keepOut keeps the client of a namespace that asks most from a service.
func keepOut(ns, service, clients string) string {
	return fmt.Sprintf(`client=$(for d in $(kubectl get deployment -n %[3]s -o name | cut -d/ -f2); do `+
		`echo $(kubectl logs deployment/$d -n %[3]s --since=10s | wc -l) $d; done | sort -n | tail -n 1 | cut -d' ' -f2)
label=$(kubectl get deployment $client -n %[3]s -o json | `+
		`jq -r '.spec.selector.matchLabels | to_entries[0] | "{key: \(.key), operator: NotIn, values: [\(.value)]}"')
own=$(kubectl get service %[2]s -n %[1]s -o json | jq -c .spec.selector)
pods=$(kubectl get nodes -o json | jq -c '[.items[].spec.podCIDR]')
echo "It is $client."
kubectl apply -n %[1]s -f - <<END
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: %[2]s-keeps-out-$client}
spec:
  podSelector: {matchLabels: $own}
  policyTypes: [Ingress]
  ingress:
  - from:
    - ipBlock: {cidr: 0.0.0.0/0, except: $pods}
    - namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [%[3]s]}]}
    - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[3]s}}
      podSelector: {matchExpressions: [$label]}
END`, ns, service, clients)
}

// addLike makes a service like another, with labels of its own.
func addLike(ns, like string, s step) string {
	return fmt.Sprintf(`kubectl get deployment %[2]s -n %[1]s -o json | jq --arg name %[3]s --arg image %[4]s `+
		`'del(.status) | .spec.selector.matchLabels |= map_values($name) | `+
		`.metadata = {name: $name, labels: .spec.selector.matchLabels} | .spec.replicas = %[5]d | `+
		`.spec.template.metadata.labels += .spec.selector.matchLabels | `+
		`.spec.template.spec.containers[0].image = $image' | kubectl apply -n %[1]s -f - && `+
		`kubectl rollout status deployment/%[3]s -n %[1]s --timeout=90s && `+
		`kubectl expose deployment %[3]s -n %[1]s --port=%[6]d --target-port=`+
		`$(kubectl get service %[2]s -n %[1]s -o jsonpath='{.spec.ports[0].targetPort}')`,
		ns, like, quote(s.Name), quote(s.Value), s.Replicas, s.Port)
}
