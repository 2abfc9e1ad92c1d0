// Package classic has the agents without a language model that AIOpsLab's paper compares others with.
// Each learns what is normal from the telemetry of the healthy system of the same run, looks at the
// telemetry since, and submits once. None is told anything about the problem.
//
//   - MKSMC (Çetin and Tasgin, "Anomaly detection with multivariate K-sigma score using Monte Carlo", 2020)
//     detects: how many standard deviations are all signals away from normal, taken together?
//   - PDiagnose (Hou et al., "Diagnosing performance issues in microservices with heterogeneous data
//     source", 2021) localizes: metrics, logs and traces each vote for the services where they are
//     anomalous.
//   - RMLAD (Wang et al., "Root-cause metric location for microservice systems via log anomaly
//     detection", 2020) localizes: the metric that changed along with how unusual the logs are is at
//     the root.
//
// They follow the papers as far as these are public: the abstracts, what later papers say of them, and programs of
// others that follow them. Of MKSMC that is the title. mksmc.go, pdiagnose.go and rmlad.go say what is public of each
// and what was chosen here, also because a minute is a short history; every number is a named constant with where it is
// from. docs/agents.md has them in a table.
//
// Each agent runs on every problem. A detector asked for a place, or a localizer asked for an anomaly, answers by
// the same scores. These methods say nothing about the kind of a fault and its remedy, so such questions get an
// empty submission. On call, each looks when the pager calls, and names its suspects; it mends nothing.
//
// The answer is a function of the two exports: the random numbers of MKSMC and RMLAD come from a fixed seed.
package classic
