package trainticket

import "github.com/aiopslab/aiopslab/kit"

// parts are the services.
var parts = []part{
	gatewayPart, authPart, userPart, stationPart, trainPart, routePart, pricePart, travelPart, seatPart, orderPart,
	preservePart, cancelPart, insidePart, paymentPart, notificationPart,
}

// Image has every service as a program of that name. The tools, by name, are what it has in /bin.
func Image(tools map[string]kit.Program) kit.Image {
	i := kit.Image{
		Names:    []string{"aiopslab/train-ticket"},
		Tags:     `latest|v1(\.\d+)*`,
		Vars:     map[string]string{"PATH": "/app/bin:" + kit.DefaultPath},
		WorkDir:  "/app",
		Programs: map[string]kit.Program{},
		Memory:   16 << 20,
		Size:     190 << 20,
	}
	for name, tool := range tools {
		i.Programs["/bin/"+name] = tool
	}
	for _, p := range parts {
		i.Programs["/app/bin/"+p.name] = p.main
	}
	return i
}
