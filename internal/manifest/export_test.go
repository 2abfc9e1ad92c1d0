package manifest

// Ready is how a workload is judged.
var Ready = ready
