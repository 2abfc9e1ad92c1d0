// Package flower is federated learning: two parties train one model of handwritten digits together, and neither
// shows the other its pictures. The containers are those of a Flower deployment:
//
//	serverapp (HTTP :8080)   has the strategy: asks nodes to train, averages what they send, serves the model
//	  superlink              has the runs and the nodes (:9091 for server apps, :9092 for nodes, :9093 for people)
//	supernode-1, -2          are the parties' nodes: they fetch messages and bring replies
//	clientapp-1, -2          have a party's pictures and train on them
//
// Users start runs and have pictures read by the model of the last run. Each party has pictures of five of the ten
// digits: a run without one of them makes a model that misreads half of what it is shown.
//
// Services and methods have the names of Flower's protocol; the messages are the lab's own. [Image] and its like have
// the programs; [App] has the manifests that deploy them.
package flower
