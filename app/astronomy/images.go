package astronomy

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/jpeg"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	imageCost          = 100 * time.Microsecond
	imageWide          = 240
	imageHigh          = 160
	stars              = 90
	imageGood          = 70 // of 100
	comment            = 0xfe
	night              = 0x18
	jpegMark, jpegHead = 0xff, 2 // what a segment begins with; where the first one after the mark of the file is
)

// imageProviderMain is the program image-provider: pictures of the products.
func imageProviderMain(ctx context.Context, env *kit.Env) error {
	s, err := start(ctx, env, "image-provider")
	if err != nil {
		return err
	}
	defer s.Close()
	mux := http.NewServeMux()
	for i, p := range products {
		data, err := picture(p.picture, uint64(i))
		if err != nil {
			return s.Fatal(ctx, "cannot draw "+p.name, err)
		}
		s.HandleFunc(mux, "GET /products/"+p.picture+".jpg", "/products/", imageCost,
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "image/jpeg")
				_, _ = w.Write(data)
			})
	}
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("image-provider is well\n"))
	})
	address := listenAddress(env, "IMAGE_PROVIDER_PORT")
	s.Log.Info("image-provider listening", slog.String("address", address))
	return s.ServeHTTP(ctx, mux, address)
}

// picture draws a starry sky, with the name of the product as the file's comment.
func picture(name string, seed uint64) ([]byte, error) {
	r := rand.New(rand.NewPCG(seed, 0x57a5))
	img := image.NewGray(image.Rect(0, 0, imageWide, imageHigh))
	for i := range img.Pix {
		img.Pix[i] = night
	}
	for range stars {
		img.SetGray(r.IntN(imageWide), r.IntN(imageHigh), color.Gray{Y: uint8(128 + r.IntN(128))})
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: imageGood}); err != nil {
		return nil, err
	}
	data := b.Bytes()
	note := append([]byte{jpegMark, comment, byte((len(name) + 2) >> 8), byte(len(name) + 2)}, name...)
	return append(append(append([]byte{}, data[:jpegHead]...), note...), data[jpegHead:]...), nil
}
