# pick KIND: the objects of a kind in .survey.
pick() { jq -c --arg kind "$1" '{items: [.items[] | select(.kind == $kind)]}' .survey; }

# mine: objects as JSON in; those that are the service's own, and of its neighbours only who they are, out.
mine() {
  jq -c --arg self "$self" --arg all " $all " '
    def mine: .metadata.name == $self;
    def known: .metadata.name as $n | $all | contains(" \($n) ");
    def serves($l): (.spec.selector // {}) | to_entries | length > 0 and all(.[]; $l[.key] == .value);
    def who: {kind, metadata: {name: .metadata.name}, spec: {replicas: .spec.replicas, template: {
      metadata: {labels: .spec.template.metadata.labels},
      spec: {containers: [.spec.template.spec.containers[] | {name, image}]}}}};
    ([.items[] | select(.kind == "Deployment" and mine)][0] // {}) as $d
    | ($d.spec.template.metadata.labels // {}) as $l
    | [$d.spec.template.spec.volumes[]?.persistentVolumeClaim.claimName | strings] as $claims
    | {items: [.items[]
        | if .kind == "Deployment" then select(known) | if mine then . else who end
          elif .kind == "Service" then select(known or serves($l))
          elif .kind == "PersistentVolumeClaim" then select(.metadata.name as $n | any($claims[]; . == $n))
          elif .kind == "Pod" then select(.metadata.labels as $have | ($l | length > 0) and ($l | to_entries | all(.[]; $have[.key] == .value)))
          else select(any(.metadata.ownerReferences[]?; .name == $self)) end]}'
}

# survey NAMESPACE PROMETHEUS SECONDS SERVICE NEIGHBOUR...: a service in full, and how its neighbours fare.
survey() {
  ns=$1; prom=$2; secs=$3; self=$4; shift 3; all="$*"; any=$(echo "$all" | tr ' ' '|')
  since=60; [ $secs -ge 30 ] || since=$secs
  kubectl get deployments,services,persistentvolumeclaims,replicasets,pods -n $ns -o json | mine > .survey
  echo "== pods"; kubectl get pods -n $ns -o wide | grep -E "^($any)-"
  echo "== deployments"; pick Deployment | brief deployments
  echo "== services"; pick Service | brief services; pick PersistentVolumeClaim | brief services
  echo "== ill-pods"; pick Pod | jq -c '{items: [.items[] | select(any(.status.containerStatuses[]?; .restartCount > 0) or
    all(.status.conditions[]?; .type != "Ready" or .status != "True"))]}' | brief pods
  label=$(pick Deployment | jq -r --arg self $self '.items[] | select(.metadata.name == $self)
    | .spec.selector.matchLabels // {} | to_entries | map("\(.key)=\(.value)") | join(",")')
  if [ -n "$(pick Pod | jq -r '.items[] | select(all(.status.conditions[]?; .type != "Ready" or .status != "True")) | 1')" ]; then
    echo "== history"; pick ReplicaSet | brief replicasets | of $self
    echo "== last-words"
    for p in $(pick Pod | jq -r '.items[] | select(any(.status.containerStatuses[]?; .restartCount > 0)) | .metadata.name'); do
      kubectl logs -n $ns $p --previous --tail=15 2>/dev/null | sed "s|^|[pod/$p/previous] |"
    done
  fi
  if [ -n "$label" ]; then
    echo "== logs"; kubectl logs -n $ns -l $label --prefix --since=${since}s --tail=200 --max-log-requests=100 | complaints
  fi
  echo "== metrics"; [ -z "$prom" ] || measure $prom $ns $secs | grep -E " ($any)(-[a-z0-9]+-[a-z0-9]+)? "
  echo "== connections"
  connect $(pick Service | jq -r --arg ns $ns --arg self $self --arg all " $all " '.items[]
      | select(.metadata.name as $n | $n == $self or ($all | contains(" \($n) ") | not)) | .metadata.name as $n
      | .spec.ports[]? | select(.protocol != "UDP" and .protocol != "SCTP") | "\($n).\($ns):\(.port)"') \
    $(pick Pod | jq -r '.items[] | select(.status.podIP and .metadata.deletionTimestamp == null) | .status.podIP as $ip
      | [.spec.containers[].ports[]?.containerPort] | select(length > 0) | "\($ip):\(.[0])"')
  echo "== events"; kubectl get events -n $ns -o json | recent | grep "^created $self-"
  rm -f .survey
}
