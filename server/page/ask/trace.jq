# Of some traces, one that failed if there is one, and among those the longest: its spans as lists.
def failed: any(.tags[]?; .key == "error" and (.value == true or .value == "true"));
[.data[] | . as $trace | {
	bad: any(.spans[]; failed),
	long: ([.spans[].duration] | max),
	spans: [.spans[:50][] | [
		.spanID, (.references[0].spanID // ""), $trace.processes[.processID].serviceName, .operationName,
		.startTime, .duration, failed
	]]
}] | sort_by([.bad, .long]) | last
