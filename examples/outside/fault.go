package main

import (
	"fmt"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/fault"
)

// wrongStoreParams are what a problem may set, with their explanation.
type wrongStoreParams struct {
	Address string `yaml:"address" doc:"where the service looks for its store"`
}

// wrongStore is a kind of fault: notes is deployed with the address of a store that is no more.
func wrongStore() *fault.Kind {
	return fault.Define(fault.Kind{
		Name:  "wrong_store",
		Title: "A service looks for its store where there is none",
		Description: `The variable STORE of the service is changed to another address. The service does not start.
An operator sets the variable to the address of the store.`,
		Cause:     fault.Cause{SystemLevel: "Application", FaultType: "Misconfiguration"},
		TrueFixes: fault.RollBackFixes,
		Targets: func(a *app.App) []string {
			if a.Name != "notes" {
				return nil
			}
			return []string{"notes"}
		},
	}, wrongStoreParams{Address: "store-old:6379"}, func(t fault.Target, p wrongStoreParams) (fault.Fault, error) {
		return fault.Redeploy(t, func(spec map[string]any) error {
			return fault.SetContainer(spec, "env", []any{map[string]any{"name": "STORE", "value": p.Address}})
		})
	}, func(t fault.Target, _ wrongStoreParams) []string {
		return []string{
			fmt.Sprintf("kubectl set env deployment/%s STORE=store:6379", t.Service),
			fmt.Sprintf("kubectl rollout status deployment/%s --timeout=60s", t.Service),
		}
	})
}
