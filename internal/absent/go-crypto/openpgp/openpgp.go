// Package openpgp stands for OpenPGP, by which charts can be signed, and which is not linked: it declares what
// Helm uses of it, and neither reads keys nor checks signatures.
package openpgp

import (
	"io"

	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// The types of blocks that have keys.
const (
	PublicKeyType  = "PGP PUBLIC KEY BLOCK"
	PrivateKeyType = "PGP PRIVATE KEY BLOCK"
)

// Entity would be somebody who signs.
type Entity struct {
	PrimaryKey *packet.PublicKey
	PrivateKey *packet.PrivateKey
	Identities map[string]struct{}
}

// EntityList would be some of them.
type EntityList []*Entity

// ReadEntity reads nobody.
func ReadEntity(*packet.Reader) (*Entity, error) { return nil, packet.ErrNone }

// ReadKeyRing reads nobody.
func ReadKeyRing(io.Reader) (EntityList, error) { return nil, packet.ErrNone }

// CheckDetachedSignature trusts nobody.
func CheckDetachedSignature(EntityList, io.Reader, io.Reader, *packet.Config) (*Entity, error) {
	return nil, packet.ErrNone
}
