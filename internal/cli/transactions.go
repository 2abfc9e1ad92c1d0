package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/aiopslab/aiopslab/guard"
)

// newTransactions is what `kubectl lab` is: transactions for agents that know kubectl and nothing else. It talks to the
// guard that the kubeconfig leads to.
func newTransactions(flags *genericclioptions.ConfigFlags, out io.Writer) *cobra.Command {
	lab := &cobra.Command{
		Use:   "lab",
		Short: "Keep or take back what was written to the API",
		Long: `Transactions: what is written to the API after 'kubectl lab begin', up to 20
writes, is kept by 'kubectl lab commit' and taken back by 'kubectl lab abort'.
It is taken back as well if the work ends before, and at the commit if the
system is worse than at the beginning.`,
	}
	add := func(use, short, method string, args cobra.PositionalArgs, query func([]string) url.Values) *cobra.Command {
		c := &cobra.Command{
			Use: use, Short: short, Args: args, DisableFlagsInUseLine: true,
			Run: func(c *cobra.Command, args []string) {
				action, _, _ := strings.Cut(use, " ")
				cmdutil.CheckErr(transact(c.Context(), flags, out, method, action, query(args)))
			},
		}
		lab.AddCommand(c)
		return c
	}
	none := func([]string) url.Values { return nil }
	add("begin", "Begin a transaction", http.MethodPost, cobra.NoArgs, none)
	var wait int
	add("commit [--wait=SECONDS]", "End the transaction and keep its writes, if the system is no worse",
		http.MethodPost, cobra.NoArgs, func([]string) url.Values { return url.Values{"wait": {fmt.Sprint(wait)}} }).
		Flags().IntVar(&wait, "wait", int(guard.DefaultWait.Seconds()),
		"How long to wait for the system to be no worse, in seconds.")
	add("abort", "End the transaction and take its writes back", http.MethodPost, cobra.NoArgs, none)
	add("undo [N]", "Take back the last N writes; 1 by default", http.MethodPost, cobra.MaximumNArgs(1),
		func(args []string) url.Values { return url.Values{"n": args} })
	add("history", "List what was written, and what was taken back", http.MethodGet, cobra.NoArgs, none)
	return lab
}

// maxTransactionAnswer is the longest answer that is read.
const maxTransactionAnswer = 1 << 20

// transact has the guard do an action, and prints its answer.
func transact(ctx context.Context, flags *genericclioptions.ConfigFlags, out io.Writer, method, action string,
	query url.Values,
) error {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return err
	}
	config.Timeout = 0 // A commit waits.
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return err
	}
	u := base.JoinPath(guard.TransactionPath, action)
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxTransactionAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		var s metav1.Status
		if json.Unmarshal(body, &s) == nil && s.Message != "" {
			return errors.New(s.Message)
		}
		return fmt.Errorf("there are no transactions at %s: use the kubeconfig that the agent of a run has", base.Host)
	}
	_, err = out.Write(body)
	return err
}
