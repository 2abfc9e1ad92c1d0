// Package kuberc makes kubectl's preferences explicit: a command line with an alias or with defaults
// out of a kuberc file becomes one that says the same by itself. So whoever judges command lines sees
// what is run.
//
//	args, err := kuberc.Expand([]string{"kubectl", "--kuberc=/home/me/.kube/kuberc", "getn", "web"}, os.Stderr)
//	// kubectl --output=wide --kuberc=/home/me/.kube/kuberc get pods --namespace=shop web
package kuberc

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/kuberc"
)

// Expand applies the file that --kuberc names to a command line, kubectl included, as kubectl does.
// Warnings go to stderr.
func Expand(args []string, stderr io.Writer) ([]string, error) {
	config := genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag()
	root := kubectl.NewKubectlCommand(kubectl.KubectlOptions{
		Arguments: []string{"kubectl"}, ConfigFlags: config, // These arguments have nothing that could be applied yet.
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: stderr},
	})
	args, err := kuberc.NewPreferences().Apply(root, config, slices.Clone(args), stderr)
	if err != nil {
		return nil, fmt.Errorf("error occurred while applying preferences %w", err)
	}
	cmd, _, err := root.Find(args[1:])
	if err != nil {
		return args, nil // kubectl itself says so.
	}
	rest, alias := unalias(root, args[1:])
	expanded := []string{args[0]}
	set := func(f *pflag.Flag) {
		if own := explicit(f); cmd.Flag(f.Name) != nil && !slices.Contains(expanded, own[0]) {
			expanded = append(expanded, own...)
		}
	}
	cmd.Flags().Visit(set)
	if alias != nil {
		alias.Flags().Visit(set) // It may stand for a group of commands, and cmd be one of those.
	}
	return append(expanded, rest...), nil
}

// explicit is what sets a flag to its value.
func explicit(f *pflag.Flag) (args []string) {
	if list, ok := f.Value.(pflag.SliceValue); ok && len(list.GetSlice()) > 0 {
		for _, v := range list.GetSlice() {
			args = append(args, "--"+f.Name+"="+v)
		}
		return args
	}
	return []string{"--" + f.Name + "=" + strings.Trim(f.Value.String(), "[]")}
}

// unalias replaces an alias by the command it stands for. The alias, which it returns if there is one,
// is a copy of that command, with the same flags.
func unalias(root *cobra.Command, args []string) (replaced []string, alias *cobra.Command) {
	i := slices.IndexFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") })
	if i < 0 {
		return args, nil
	}
	for _, c := range root.Commands() {
		if c.Name() != args[i] {
			continue
		}
		if original := find(root, c); original != nil {
			words := strings.Fields(original.CommandPath())[1:]
			return slices.Concat(args[:i], words, args[i+1:]), c
		}
	}
	return args, nil
}

// find returns another command with the flags of one, at a command or below it.
func find(at, of *cobra.Command) *cobra.Command {
	if at == of {
		return nil
	}
	if at.Flags() == of.Flags() {
		return at
	}
	for _, c := range at.Commands() {
		if found := find(c, of); found != nil {
			return found
		}
	}
	return nil
}
