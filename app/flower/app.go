package flower

import (
	"embed"

	"github.com/aiopslab/aiopslab/app"
)

//go:embed manifests/*.yaml mixes/*.yaml
var files embed.FS

// App is the federation.
func App() *app.App {
	services := []app.Service{
		{Name: "serverapp", Kind: "service", Calls: []string{"superlink"}},
		{Name: "superlink", Kind: "infrastructure", Port: 9093},
		{Name: "supernode-1", Kind: "service", Calls: []string{"superlink"}},
		{Name: "supernode-2", Kind: "service", Calls: []string{"superlink"}},
		{Name: "clientapp-1", Kind: "service", Calls: []string{"supernode-1"}},
		{Name: "clientapp-2", Kind: "service", Calls: []string{"supernode-2"}},
		{Name: "jaeger", Kind: "infrastructure", Port: 16686},
	}
	for i := range services {
		services[i].Ask = questions[services[i].Name]
	}
	return &app.App{
		Name: "flower", Title: "Flower", Namespace: "flower",
		Description: "Federated learning with Flower: two parties train one model that reads handwritten digits, and " +
			"neither shows the other its pictures. A server app asks the parties' nodes through a link to train, and " +
			"averages what they send.",
		Operations: []string{
			"Start a run: some rounds in which all parties train and their models are averaged",
			"Look at runs, with the loss and the accuracy of each round",
			"Have the model of the last run read a picture of a digit",
		},
		Manifests: app.Embedded(files, "manifests"),
		Frontend:  app.Endpoint{Service: "serverapp", Port: 8080},
		Label:     "app",
		Services:  services,
		Mix:       "flower-mixed",
		Mixes:     app.Embedded(files, "mixes"),
		Heard:     []string{"/runs?status={words}"},
	}
}
