#!/bin/sh
# An agent in a program of its own, without anything that knows JSON: looks at the pods once, and calls
# it an anomaly if one is not well.
#
#   aiopslab run container_kill-detection --agent 'exec:sh examples/agent.sh'
read -r hello
read -r observation
echo '{"type":"call","name":"exec_shell","arguments":{"command":"kubectl get pods --no-headers"}}'
read -r observation
case $observation in
*" 0/1 "*) answer=Yes ;;
*) answer=No ;;
esac
echo '{"type":"call","name":"submit","arguments":{"has_anomaly":"'$answer'"}}'
read -r end
