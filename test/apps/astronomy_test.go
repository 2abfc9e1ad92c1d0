package apps

import (
	"testing"

	"github.com/aiopslab/aiopslab/app/astronomy"
	"github.com/aiopslab/aiopslab/test/labtest"
)

func TestAstronomyShop(t *testing.T) {
	t.Parallel()
	x := deploy(t, astronomy.App(), "/api/products")
	for _, page := range []string{
		"/", "/api/recommendations?productIds=HQTGWGPNH4", "/api/data?contextKeys=travel", "/api/cart?sessionId=x",
		"/images/products/TheComet.jpg", "/loadgen/stats/requests", "/feature/",
	} {
		labtest.Await(t, func() (string, error) { return x.get(page) })
	}
	l := x.load(t, 15)
	l.survive(t, "four releases", func() { x.releases(t) })
	l.survive(t, "a release, and services that are scaled", func() { x.live(t, "recommendation") })
	l.survive(t, "cart is killed", func() { x.kill(t, "cart") })
	l.survive(t, "Kafka is killed", func() { x.kill(t, "kafka") })
	l.survive(t, "every deployment is restarted", func() { x.restart(t) })
	l.survive(t, "the database is scaled to 0 and back", func() {
		x.scale(t, "postgresql", 0)
		x.alertFires(t, "ServiceEndpointDown", map[string]string{"service": "postgresql"})
		x.scale(t, "postgresql", 1)
		x.waitReady(t)
	})
	x.alertEnds(t, "ServiceEndpointDown")
	l.end()
	x.exports(t)
}
