// Package dataset makes a data set of incidents of the telemetry that runs have kept, in the shape that RCAEval uses,
// for classic root-cause analysis:
//
//	s := dataset.Set{Dir: "incidents"}
//	for _, file := range files {
//		run, err := export.Read(file)
//		...
//		err = s.Add(run)
//	}
//
// Below the directory are
//
//	cases/RUN/     what can be seen: metrics.csv, simple_metrics.csv, logs.csv, traces.csv, topology.json
//	truth/RUN/     what is right: truth.json, and inject_time.txt if something was wrong
//	rcaeval/APP/SERVICE_FAULT/N/    links to both, under the names by which RCAEval's programs find them
//
// so that an algorithm can be given the cases without the truth. A case is in place only once it is whole, and adding a
// run again makes the same case.
package dataset
