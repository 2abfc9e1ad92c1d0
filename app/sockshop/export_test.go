package sockshop

// Ports are where the services listen.
func Ports() map[string]int {
	list := map[string]int{}
	for _, p := range parts {
		list[p.name] = p.port
	}
	return list
}
