# brief KIND: objects as JSON in; what matters of each on a line, out.
brief() {
  case $1 in
  deployments) p='{kind,
      metadata: (.metadata | {name, annotations: (.annotations // {} | {"deployment.kubernetes.io/revision"})}),
      spec: {replicas: .spec.replicas, template: {
        metadata: {labels: .spec.template.metadata.labels},
        spec: (.spec.template.spec | {nodeSelector,
          containers: [.containers[] | {name, image, command, args, ports: [.ports[]? | {name, containerPort}]}],
          volumes: [.volumes[]? | {name, configMap, persistentVolumeClaim}]})}}}' ;;
  services) p='{kind, metadata: {name: .metadata.name},
      spec: (.spec | {clusterIP, selector, volumeName, ports: [.ports[]? | {name, port, targetPort, protocol}]}),
      status: {phase: .status.phase}}' ;;
  pods) p='{kind: "Pod", metadata: {name: .metadata.name}, spec: {nodeName: .spec.nodeName},
      status: (.status | {phase,
        conditions: [.conditions[]? | select(.status != "True") | {type, status, reason, message}],
        containerStatuses: [.containerStatuses[]? | {name, ready, restartCount, state, lastState}]})}' ;;
  replicasets) p='{
      metadata: (.metadata | {name, annotations: (.annotations // {} | {"deployment.kubernetes.io/revision"}),
        ownerReferences: [.ownerReferences[]? | {name, kind}]}),
      spec: {template: {spec: (.spec.template.spec | {nodeSelector,
        containers: [.containers[] | {name, image, command, args, env}]})}}}' ;;
  volumes) p='{kind: "PersistentVolume", metadata: {name: .metadata.name},
      spec: {claimRef: (.spec.claimRef // {} | {name, namespace, uid})}, status: {phase: .status.phase}}' ;;
  configmaps) p='{name: .metadata.name, data}' ;;
  esac
  jq -c "(.items // [.])[] | $p | del(.. | select(. == null))"
}

# of NAME...: keep the lines about objects that belong to one of these.
of() { grep -E "\"ownerReferences\":\[\{[^]]*\"name\":\"($(echo "$*" | tr ' ' '|'))\""; }

# recent: events as JSON in; how many pods each ReplicaSet had to make in the last three minutes beyond those that
# somebody asked for by scaling it, out.
recent() {
  jq -r '
    [.items[] | select(now - (.lastTimestamp // .eventTime // .metadata.creationTimestamp | sub("[.][0-9]+"; "") | fromdate) < 180)] as $all
    | [$all[] | select(.reason == "SuccessfulCreate")]
    | group_by(.involvedObject.name)[] | .[0].involvedObject.name as $set | (map(.count // 1) | add) as $made
    | ([$all[] | select(.reason == "ScalingReplicaSet") | (.count // 1) as $n | .message
        | capture("Scaled up replica set (?<set>[^ ]+)( from (?<a>[0-9]+))? to (?<b>[0-9]+)") | select(.set == $set)
        | $n * ((.b | tonumber) - (.a // "0" | tonumber))] | add // 0) as $asked
    | select($made > $asked) | "created \($set) \($made - $asked)"'
}

# complaints: logs in; lines that speak of trouble, without times, how often, the three most frequent of each pod, out.
complaints() {
  grep -iE 'err|fail|fatal|panic|warn|denied|refused|timeout|timed out|deadline|unauthor|not author|cannot|killed|"s":"[EF]"' |
    sed -E 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+][0-9:]+)//g; s/(conn|remote":"[0-9.]+:)[0-9]+/\1/g' |
    cut -c1-400 | sort | uniq -c | sort -rn | awk 'n[$2]++ < 3'
}

# ports NAMESPACE: the TCP ports of its Services, and the first of each pod, as HOST:PORT.
ports() {
  kubectl get services -n $1 -o json | jq -r '.items[] | "\(.metadata.name).\(.metadata.namespace)" as $host
    | .spec.ports[]? | select(.protocol != "UDP" and .protocol != "SCTP") | "\($host):\(.port)"' | sort
  kubectl get pods -n $1 -o json | jq -r '.items[] | select(.status.podIP and .metadata.deletionTimestamp == null)
    | .status.podIP as $ip | [.spec.containers[].ports[]?.containerPort] | select(length > 0) | "\($ip):\(.[0])"'
}

# connect HOST:PORT...: try each three times; the exit status of nc, and milliseconds.
connect() {
  for t in "$@"; do for n in 1 2 3; do
    s=$(date +%s%N); nc -z -w 2 ${t%:*} ${t#*:} 2>/dev/null; echo $t $? $((($(date +%s%N) - s) / 1000000))
  done; done
}

# measure PROMETHEUS NAMESPACE SECONDS: what is out of bounds: errors above 3 %, p95 above 1 s, CPU throttled half of the time, memory above 90 %.
measure() {
  ns="namespace=\"$2\""; w="${3}s"
  bad='grpc_code=~"Unknown|DeadlineExceeded|ResourceExhausted|Aborted|Unimplemented|Internal|Unavailable|DataLoss"'
  q() { curl -s -G --max-time 5 http://$prom/api/v1/query --data-urlencode "query=$3" | jq -r ".data.result[] | \"$1 \\(.metric.$2) \\(.value[1])\""; }
  ratio() { q $1 service "sum by (service) (rate($2{$3,$ns}[$w])) / sum by (service) (rate($2{$ns}[$w])) > 0.03"; }
  p95() { q $1 service "histogram_quantile(0.95, sum by (service, le) (rate($2_bucket{$ns}[$w]))) > 1"; }
  prom=$1
  ratio http-errors http_requests_total 'code=~"5.."'
  ratio rpc-errors grpc_server_handled_total "$bad"
  ratio store-errors store_request_duration_seconds_count 'result="error"'
  p95 http-p95 http_request_duration_seconds
  p95 rpc-p95 grpc_server_handling_seconds
  p95 store-p95 store_request_duration_seconds
  q throttled pod "sum by (pod) (rate(container_cpu_cfs_throttled_periods_total{$ns}[$w])) / sum by (pod) (rate(container_cpu_cfs_periods_total{$ns}[$w])) > 0.5"
  q memory pod "sum by (pod) (container_memory_working_set_bytes{$ns,container!=\"\"}) / sum by (pod) (container_spec_memory_limit_bytes{$ns,container!=\"\"} > 0) > 0.9"
}
