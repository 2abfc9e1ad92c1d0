package interp

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/expand"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// environ shows a shell's variables and special parameters to package expand.
type environ struct{ s *Shell }

var _ expand.WriteEnviron = environ{}

func text(s string) expand.Variable { return expand.Variable{Set: true, Kind: expand.String, Str: s} }

func list(l []string) expand.Variable {
	return expand.Variable{Set: true, Kind: expand.Indexed, List: l}
}

// Get returns a variable. In an expansion it may become part of the result each time.
func (e environ) Get(name string) expand.Variable {
	v := e.get(name)
	if e.s.expansion != nil {
		e.s.swell(sizeOf(v))
	}
	return v
}

func (e environ) get(name string) expand.Variable {
	s := e.s
	switch name {
	case "@", "*":
		return list(s.params)
	case "#":
		return text(strconv.Itoa(len(s.params)))
	case "?":
		return text(strconv.Itoa(s.status))
	case "$":
		return text(strconv.Itoa(s.pid))
	case "!":
		if s.jobs.last == 0 {
			return expand.Variable{}
		}
		return text(strconv.Itoa(s.jobs.last))
	case "-":
		return text(s.opts.letters())
	case "0":
		return text(s.name)
	case "PIPESTATUS":
		return list(s.pipeStatus)
	case "FUNCNAME":
		var names []string
		for _, c := range slices.Backward(s.calls) {
			names = append(names, c.name)
		}
		return expand.Variable{Set: len(names) > 0, Kind: expand.Indexed, List: names}
	}
	if n, err := strconv.Atoi(name); err == nil {
		if n > 0 && n <= len(s.params) {
			return text(s.params[n-1])
		}
		return expand.Variable{}
	}
	if user, ok := strings.CutPrefix(name, "HOME "); ok {
		return text(s.homeOf(user))
	}
	if v, ok := s.vars[name]; ok {
		return v
	}
	return s.dynamic(name)
}

// dynamic are the variables that are made when they are asked for.
func (s *Shell) dynamic(name string) expand.Variable {
	switch name {
	case "RANDOM":
		return text(strconv.Itoa(s.random.IntN(32768)))
	case "SECONDS":
		return text(strconv.Itoa(int(time.Since(s.started).Seconds())))
	case "EPOCHSECONDS":
		return text(strconv.FormatInt(time.Now().Unix(), 10))
	case "EPOCHREALTIME":
		now := time.Now()
		return text(fmt.Sprintf("%d.%06d", now.Unix(), now.Nanosecond()/1000))
	case "PPID":
		for _, p := range s.env.Procs.List() {
			if p.PID == s.pid {
				return text(strconv.Itoa(p.Parent))
			}
		}
		return text("0")
	case "BASHPID":
		return text(strconv.Itoa(s.env.PID))
	case "BASH_SOURCE":
		if s.bash {
			return list([]string{s.name})
		}
	case "OSTYPE":
		if s.bash {
			return text("linux-gnu")
		}
	case "UID", "EUID":
		return text(strconv.Itoa(s.env.User.UID))
	case "HOSTNAME":
		return text(s.env.Hostname)
	}
	return expand.Variable{}
}

// homeOf is what ~user stands for. An unknown user's stands for itself: leaving it unset would have
// package expand ask the host.
func (s *Shell) homeOf(user string) string {
	if a, ok := tool.ReadAccounts(s.env).ByName(user); ok {
		return a.Home
	}
	return "~" + user
}

func (e environ) Set(name string, v expand.Variable) error { return e.s.setVar(name, v) }

func (e environ) Each(f func(string, expand.Variable) bool) {
	for _, name := range slices.Sorted(maps.Keys(e.s.vars)) {
		if !f(name, e.s.vars[name]) {
			return
		}
	}
}

// readOnlyError is the attempt to change a variable that may not be changed.
type readOnlyError struct {
	name string
	bash bool
}

func (e readOnlyError) Error() string {
	if e.bash {
		return e.name + ": readonly variable"
	}
	return e.name + ": is read only"
}

// setVar sets a variable, or unsets it if v is not set.
func (s *Shell) setVar(name string, v expand.Variable) error {
	old, exists := s.vars[name]
	if old.ReadOnly && v.Kind != expand.KeepValue {
		return readOnlyError{name, s.bash}
	}
	if v.Kind == expand.KeepValue {
		v.Set, v.Kind, v.Str, v.List, v.Indexes, v.Map = old.Set, old.Kind, old.Str, old.List, old.Indexes, old.Map
	} else if !v.Set && !v.Declared() {
		delete(s.vars, name)
		return nil
	}
	if exists {
		v.Exported = v.Exported || old.Exported
	}
	v.Exported = v.Exported || s.opts.allExport
	if err := s.holder.Add(sizeOf(v) - sizeOf(old)); err != nil {
		return err
	}
	s.vars[name] = v
	switch name {
	case "OPTIND":
		s.getopts = getoptsState{}
	case "RANDOM":
		delete(s.vars, name)
	}
	return nil
}

// What an element of a list and of a map takes beside its text.
const (
	elementSize = 32
	entrySize   = 96
)

// sizeOf is what a variable takes.
func sizeOf(v expand.Variable) int {
	size := len(v.Str) + sizeOfList(v.List)
	for key, value := range v.Map {
		size += entrySize + len(key) + len(value)
	}
	return size
}

func sizeOfList(list []string) (size int) {
	for _, value := range list {
		size += elementSize + len(value)
	}
	return size
}

// get returns a variable as text.
func (s *Shell) get(name string) string { return environ{s}.Get(name).String() }

// set sets a variable to a text. It complains if that is not allowed.
func (s *Shell) set(name, value string) bool {
	if err := s.setVar(name, text(value)); err != nil {
		s.complain("%v", err)
		s.status = 1
		return false
	}
	return true
}

// unset removes a variable.
func (s *Shell) unset(name string) error {
	if s.vars[name].ReadOnly {
		return readOnlyError{name, s.bash}
	}
	_ = s.holder.Add(-sizeOf(s.vars[name])) // Less is never too much.
	delete(s.vars, name)
	return nil
}

// exported are the variables of the programs the shell starts.
func (s *Shell) exported() map[string]string {
	vars := make(map[string]string, len(s.vars))
	for name, v := range s.vars {
		if v.Exported && v.Set && v.Kind == expand.String {
			vars[name] = v.Str
		}
	}
	return vars
}

// local makes a variable one of the function under way.
func (s *Shell) local(name string) {
	c := s.calls[len(s.calls)-1]
	if _, ok := c.saved[name]; ok {
		return
	}
	old, ok := s.vars[name]
	if c.saved == nil {
		c.saved = map[string]savedVar{}
	}
	c.saved[name] = savedVar{old, ok}
	if ok && s.bash {
		delete(s.vars, name) // ash lets a local variable begin with the value it hides.
	}
}

// restore puts back variables as they were.
func (s *Shell) restore(saved map[string]savedVar) {
	for name, old := range saved {
		if old.ok {
			s.vars[name] = old.v
		} else {
			delete(s.vars, name)
		}
	}
}
