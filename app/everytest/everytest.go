// Package everytest gives tests all applications that are built in.
package everytest

import (
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/app/astronomy"
	"github.com/aiopslab/aiopslab/app/flightticket"
	"github.com/aiopslab/aiopslab/app/flower"
	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/app/social"
	"github.com/aiopslab/aiopslab/app/sockshop"
	"github.com/aiopslab/aiopslab/app/tidb"
	"github.com/aiopslab/aiopslab/app/trainticket"
)

// Apps are the applications.
func Apps() []*app.App {
	return []*app.App{
		hotel.App(), social.App(), astronomy.App(), tidb.App(), flower.App(), flightticket.App(), trainticket.App(),
		sockshop.App(),
	}
}
