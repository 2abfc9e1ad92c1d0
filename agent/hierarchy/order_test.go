package hierarchy

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/problem"
)

var stalls = []string{"front-end", "catalogue", "orders", "catalogue-db"}

func TestReadOrder(t *testing.T) {
	slo := objectives{Ready: true, CPU: 0.5, Memory: 0.5, P99: 200 * time.Millisecond}
	for _, tt := range []struct {
		ask    string
		report []problem.Item
		want   *order
	}{
		{
			ask: "The Deployment orders does not exist. Create it from its manifest, which is in the ConfigMap spare under " +
				"orders.yaml.",
			want: &order{
				Services: []string{"orders"},
				Steps:    []step{{Kind: createStep, Service: "orders", Name: "spare", Value: "orders.yaml"}},
			},
		},
		{
			ask: "Set the environment variable verbose of the Deployment catalogue to yes.",
			want: &order{
				Services: []string{"catalogue"},
				Steps:    []step{{Kind: envStep, Service: "catalogue", Name: "verbose", Value: "yes"}},
			},
		},
		{
			ask: "The Deployment orders was given the image shop/catalogue:0.4. Roll it back to version 0.3.1.",
			want: &order{
				Services: []string{"orders"}, Steps: []step{{Kind: imageStep, Service: "orders", Value: "0.3.1"}},
			},
		},
		{
			ask: "Scale the Deployment catalogue to 7 replicas.",
			want: &order{
				Services: []string{"catalogue"}, Steps: []step{{Kind: scaleStep, Service: "catalogue", Value: "7"}},
			},
		},
		{
			ask: "Restart all pods of the Deployment orders.",
			want: &order{
				Services: []string{"orders"}, Steps: []step{{Kind: restartStep, Service: "orders"}},
			},
		},
		{
			ask: "Set up autoscaling for the service orders, with bounds and a CPU target that make sense for it.",
			want: &order{
				Services: []string{"orders"}, Steps: []step{{Kind: autoscaleStep, Service: "orders"}},
			},
		},
		{
			ask: "Rotate the login of the service orders to its database catalogue-db, a MySQL server: it has leaked. " +
				"Another one is to be in the Secret keys, under username and password.",
			want: &order{
				Services: []string{"catalogue-db"},
				Steps:    []step{{Kind: rotateStep, Service: "catalogue-db", Name: "keys", Value: "orders"}},
			},
		},
		{
			ask: "One of the clients in the namespace guests floods the service front-end with requests. Find out which " +
				"one, and block it.",
			want: &order{
				Services: []string{"front-end"}, Steps: []step{{Kind: blockStep, Service: "front-end", Name: "guests"}},
			},
		},
		{
			ask: "Add a service to the running shop. It is called orders-2: a Deployment of that name with 3 replicas of " +
				"the image shop/orders:1.2, which do as orders does, and a Service of that name that answers on port 8080.",
			want: &order{
				Services: []string{"orders"}, Steps: []step{{
					Kind: addStep, Service: "orders", Name: "orders-2", Value: "shop/orders:1.2", Replicas: 3, Port: 8080,
				}},
			},
		},
		{
			ask:    "Report how much CPU the service orders uses at present.",
			report: []problem.Item{{Key: "cpu", Is: problem.CPUItem, Of: "orders"}},
			want:   &order{Services: []string{"orders"}, Report: []entry{{Key: "cpu", Is: "cpu", Of: "orders"}}},
		},
		{
			ask: "Check whether the service orders is healthy: whether all its pods are ready.",
			report: []problem.Item{
				{Key: "healthy", Value: "yes", Words: []string{"yes", "no"}}, {Key: "p99", Is: problem.P99Item, Of: "orders"},
			},
			want: &order{
				Services: []string{"orders"}, Objectives: objectives{Ready: true},
				Report: []entry{{Key: "healthy", Words: []string{"yes", "no"}}, {Key: "p99", Is: "p99", Of: "orders"}},
			},
		},
		{
			ask: "Check whether the performance of orders is normal: 99 of 100 requests are to take less than a second.",
			want: &order{
				Services: []string{"orders"}, Objectives: objectives{P99: time.Second},
			},
		},
		{
			ask: "Bring the CPU usage of the service catalogue below 35 % of its limits, on average over its pods. Users come " +
				"through the front-end.",
			want: &order{Services: []string{"catalogue"}, Objectives: objectives{CPU: 0.35}, Fix: true},
		},
		{
			ask: "Bring the 99th percentiles of the latencies of the services catalogue and front-end below 450 ms in sum.",
			want: &order{
				Services: []string{"catalogue", "front-end"}, Fix: true,
				Objectives: objectives{P99: 450 * time.Millisecond, Sum: true},
			},
		},
		{
			ask: "Check the state of the service catalogue. Its service level objectives are: all pods are ready, they use " +
				"less than 50 % of their CPU and memory limits, and 99 of 100 requests take less than 200 ms. If they are not " +
				"met, find out why, and see to it that they are, and stay so.",
			want: &order{Services: []string{"catalogue"}, Objectives: slo, Standing: true, Fix: true},
		},
		{
			ask: "Check the state of each of the services catalogue and front-end. Its service level objectives are: all " +
				"pods are ready, they use less than 50 % of their CPU and memory limits, and 99 of 100 requests take less than " +
				"200 ms. Find out whether they are met.",
			report: []problem.Item{{Key: "slo", Value: "met", Words: []string{"met", "broken"}}},
			want: &order{
				Services: []string{"catalogue", "front-end"}, Objectives: slo, Standing: true,
				Report: []entry{{Key: "slo", Words: []string{"met", "broken"}}},
			},
		},
		{ask: "Make the shop more beautiful."},
		{ask: "Run the shop on port 80 and tell the guests."},
	} {
		g := &problem.Goal{Ask: tt.ask, Report: tt.report}
		got := readOrder(aci.Description(string(problem.Operation), &app.App{}, g.Told()), stalls)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s\n%s", tt.ask, diff)
		}
	}
}

// The same is asked in other words.
func TestReadOrderOtherWords(t *testing.T) {
	one := func(s step) *order { return &order{Services: []string{s.Service}, Steps: []step{s}} }
	for _, tt := range []struct {
		asks []string
		want *order
	}{
		{[]string{
			"Set verbose=yes for the Deployment catalogue.", "Change the variable verbose of catalogue to yes.",
		}, one(step{Kind: envStep, Service: "catalogue", Name: "verbose", Value: "yes"})},
		{[]string{
			"Go back with orders to version 0.3.1.", "Take the Deployment orders back to the image 0.3.1.",
			"Downgrade orders to version 0.3.1.", "Update the image of orders to tag 0.3.1.",
		}, one(step{Kind: imageStep, Service: "orders", Value: "0.3.1"})},
		{[]string{
			"Scale catalogue to 7.", "Give catalogue 7 replicas.", "Run 7 pods of catalogue.", "Resize catalogue to 7 replicas.",
		}, one(step{Kind: scaleStep, Service: "catalogue", Value: "7"})},
		{[]string{
			"Please restart orders.", "Replace all pods of orders.", "Do a rolling restart of orders.",
		}, one(step{Kind: restartStep, Service: "orders"})},
		{[]string{
			"Create an autoscaler for orders.", "Autoscale the service orders.", "Configure autoscaling of orders.",
			"Add a HorizontalPodAutoscaler to orders.",
		}, one(step{Kind: autoscaleStep, Service: "orders"})},
		{[]string{
			"The password with which orders logs in at catalogue-db has leaked. Replace the login of orders to catalogue-db; the new one " +
				"goes into the Secret keys.",
			"Change the password of catalogue-db that orders has. It is in the Secret keys, and is to be there afterwards.",
			"Please renew the credentials of orders for catalogue-db in Secret keys.",
		}, one(step{Kind: rotateStep, Service: "catalogue-db", Name: "keys", Value: "orders"})},
		{[]string{
			"Somebody in the namespace guests hammers front-end. Find out who, and keep that one out.",
			"A client from namespace guests overloads the service front-end. Shut it out, and nobody else.",
		}, one(step{Kind: blockStep, Service: "front-end", Name: "guests"})},
		{[]string{
			"Set up another service named orders-2, with 3 pods of shop/orders:1.2, like orders, on port 8080.",
		}, one(step{Kind: addStep, Service: "orders", Name: "orders-2", Value: "shop/orders:1.2", Replicas: 3, Port: 8080})},
		{[]string{
			"Get the CPU usage of catalogue under 35 %.", "See to it that the CPU use of catalogue is at most 35 %.",
			"Reduce the CPU usage of catalogue to less than 35 %.",
		}, &order{Services: []string{"catalogue"}, Objectives: objectives{CPU: 0.35}, Fix: true}},
		{[]string{
			"Make sure that 99 % of the requests to catalogue take no more than 450 milliseconds.",
			"Ensure that the p99 of catalogue is under 450ms.", "Bring 99 in 100 requests to catalogue within 450 ms.",
		}, &order{Services: []string{"catalogue"}, Objectives: objectives{P99: 450 * time.Millisecond}, Fix: true}},
	} {
		for _, ask := range tt.asks {
			got := readOrder("This is your task: "+ask, stalls)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s\n%s", ask, diff)
			}
		}
	}
}
