// Package measure is the part of the benchmarks that measures nothing itself: statistics, the table,
// and readers of what the kernel and the go command report. It links no control plane, so its tests
// are cheap.
//
//	t := measure.Table{}
//	t.Add(measure.Row{
//		What: "start", Value: measure.Of("s", 0.71, 0.65, 0.8), Stock: measure.Of("s", 3.5),
//		Target: measure.RatioAtMost(0.3),
//	})
//	t.WriteTo(os.Stdout)
package measure
