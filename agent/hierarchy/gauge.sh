# gauge NAMESPACE PROMETHEUS SERVICE CALLED...: a service by the numbers: its Deployment, its pods and their limits, what
# they use, how its requests fare, and how those of the services that it calls.
gauge() {
  ns=$1; prom=$2; self=$3; shift 3; called=$(echo "$*" | tr ' ' '|')
  kubectl get deployments,pods,horizontalpodautoscalers -n $ns -o json | jq -r --arg self $self '
    ([.items[] | select(.kind == "Deployment" and .metadata.name == $self)][0] // {}) as $d
    | ($d.spec.selector.matchLabels // {}) as $l
    | if $d == {} then "absent" else
        "deployment \($d.spec.replicas) \($d.status.readyReplicas // 0) \($d.status.updatedReplicas // 0) " +
          "\($d.status.observedGeneration == $d.metadata.generation)",
        ($d.spec.template.spec.containers[] | "container \(.name) \(.image) \(.resources.limits.cpu // "-") " +
          "\(.resources.limits.memory // "-")"),
        (.items[] | select(.kind == "HorizontalPodAutoscaler" and .spec.scaleTargetRef.name == $self)
          | "scaler \(.spec.minReplicas // 1) \(.spec.maxReplicas)"),
        (.items[] | select(.kind == "Pod" and .metadata.deletionTimestamp == null and (.metadata.labels as $have | $l | to_entries | all(.[]; $have[.key] == .value)))
          | "pod \(.metadata.name) \(any(.status.conditions[]?; .type == "Ready" and .status == "True")) " +
            "\(.spec.nodeName // "-") " +
            "\([.status.containerStatuses[]? | .state.waiting.reason // .state.terminated.reason | strings][0] // .status.phase)")
      end' | tee .gauge
  pods=$(awk '$1 == "pod" {print $2}' .gauge | tr '\n' '|' | sed 's/|$//'); rm -f .gauge
  [ "$prom" != - ] || return 0
  of="namespace=\"$ns\""; all="$of,pod=~\"$self-[a-z0-9]+-[a-z0-9]+\",container!=\"\""
  http="http_request_duration_seconds"; rpc="grpc_server_handling_seconds"
  q() { curl -s -G --max-time 5 http://$prom/api/v1/query --data-urlencode "query=$2" |
    jq -r ".data.result[] | select(.value[1] != \"NaN\") | \"$1 \\(.metric.service // .metric.pod // \"-\") \\(.value[1])\""; }
  p99() { echo "histogram_quantile(0.99, sum by (service, le) (rate(${http}_bucket{$of,service=~\"$1\"}[20s])) or" \
    "sum by (service, le) (rate(${rpc}_bucket{$of,service=~\"$1\"}[20s])))"; }
  rate() { echo "(sum(rate(${http}_count{$of,service=\"$self\"}[20s]$1)) or sum(rate(${rpc}_count{$of,service=\"$self\"}[20s]$1)))"; }
  q cpu "sum by (pod) (rate(container_cpu_usage_seconds_total{$of,pod=~\"$pods\",container!=\"\"}[20s]))"
  q memory "sum by (pod) (container_memory_working_set_bytes{$of,pod=~\"$pods\",container!=\"\"})"
  q p99 "$(p99 "$self")"
  q rate "$(rate)"
  q rate-before "$(rate ' offset 40s')"
  cost="(sum(rate(container_cpu_usage_seconds_total{$all}[20s])) / ($(rate) > 1))"
  q cost "$cost"
  q cost-least "min_over_time($cost[10m:10s])"
  [ -z "$called" ] || q called-p99 "$(p99 "$called")"
}
