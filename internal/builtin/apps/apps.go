// Package apps lists the built-in applications, for programs that need nothing else of what is built in.
package apps

import (
	"slices"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/app/astronomy"
	"github.com/aiopslab/aiopslab/app/flightticket"
	"github.com/aiopslab/aiopslab/app/flower"
	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/app/social"
	"github.com/aiopslab/aiopslab/app/sockshop"
	"github.com/aiopslab/aiopslab/app/tidb"
	"github.com/aiopslab/aiopslab/app/trainticket"
	"github.com/aiopslab/aiopslab/image/mongo"
	"github.com/aiopslab/aiopslab/image/tidb/mysql"
	"github.com/aiopslab/aiopslab/kit"
)

// All are the applications.
func All() []*app.App {
	return []*app.App{
		hotel.App(), social.App(), astronomy.App(), tidb.App(), flower.App(), flightticket.App(), trainticket.App(),
		sockshop.App(),
	}
}

// Images are the images of their own services, with the tools, by name, in /bin.
func Images(tools map[string]kit.Program) []kit.Image {
	list := []kit.Image{
		hotel.Image(tools), hotel.GeoImage(tools), social.Image(tools), astronomy.Image(tools), tidb.Image(tools),
		trainticket.Image(tools),
	}
	return slices.Concat(list, flower.Images(tools), flightticket.Images(tools),
		sockshop.Images(tools, mongo.Image(tools), mysql.Image(tools)))
}
