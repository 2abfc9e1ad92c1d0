#!/bin/sh
# An agent that only knows kubectl: it starts what is scaled to zero, and submits.
#
#   aiopslab shell scale_pod_zero_social_net-mitigation-1 -- sh examples/mend.sh
kubectl get deployments --no-headers | while read -r name ready _; do
	case $ready in
	*/0)
		kubectl scale deployment "$name" --replicas=1
		kubectl rollout status deployment "$name"
		;;
	esac
done
submit
