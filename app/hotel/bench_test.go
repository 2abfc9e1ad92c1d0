package hotel_test

import (
	"net/http"
	"testing"
)

// BenchmarkRequests sends the usual mix of requests, with all services, stores and traces in the
// process. Its CPU time is what an application costs without a cluster around it.
func BenchmarkRequests(b *testing.B) {
	f := deploy(b)
	const n = 8 // at once
	b.SetParallelism(n)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			path := search
			switch {
			case i%200 == 199:
				path = "/user?username=Cornell_1&password=1111111111"
			case i%5 < 2:
				path = "/recommendations?require=rate&lat=38&lon=-122"
			}
			if code, body := f.get(path); code != http.StatusOK {
				b.Errorf("%s: %d %s", path, code, body)
			}
		}
	})
}
