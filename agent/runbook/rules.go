package runbook

// findings applies all rules to what is known.
func (s *system) findings() []finding {
	var list []finding
	for _, rule := range []func(*system) []finding{
		(*system).scaledAway, (*system).unplaced, (*system).containers, (*system).notReady, (*system).ports,
		(*system).reached, (*system).spoken, (*system).resources, (*system).requests,
	} {
		list = append(list, rule(s)...)
	}
	return list
}
