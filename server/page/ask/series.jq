# The first series of a range, each as its labels and its points.
if .status == "success"
then [.data.result[:6][] | [.metric, .values]]
else .
end
