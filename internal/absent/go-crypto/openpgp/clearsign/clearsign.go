// Package clearsign stands for text that is signed.
package clearsign

import (
	"io"

	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// Block would be a text and its signature.
type Block struct {
	Bytes, Plaintext []byte
	ArmoredSignature *armor.Block
}

// Decode finds nothing that is signed.
func Decode([]byte) (*Block, []byte) { return nil, nil }

// Encode signs nothing.
func Encode(io.Writer, *packet.PrivateKey, *packet.Config) (io.WriteCloser, error) {
	return nil, packet.ErrNone
}
