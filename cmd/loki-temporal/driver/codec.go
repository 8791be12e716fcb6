package driver

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"loki/internal/base/fault"
)

// KeyVariable names the environment variable with the key that encrypts what goes to the server.
const KeyVariable = "LOKI_TEMPORAL_KEY"

// minKey is the least length of a key, in bytes.
const minKey = 32

// Encrypt has a client encrypt all that it sends of runs, errors included, with a key that all clients and workers share. It
// may be any text of 32 bytes or more. What was sent without encryption can still be read.
func Encrypt(o *client.Options, key string) error {
	if len(key) < minKey {
		return fault.New(fault.Config, "%s has %d bytes, and has to have at least %d", KeyVariable, len(key), minKey).
			WithHint("make one with: openssl rand -base64 32")
	}
	c, err := newCodec(key)
	if err != nil {
		return err
	}
	o.DataConverter = converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), c)
	o.FailureConverter = temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
		DataConverter: o.DataConverter, EncodeCommonAttributes: true,
	})
	return nil
}

// Metadata of an encrypted payload.
const (
	encodingKey = converter.MetadataEncoding
	encrypted   = "binary/loki-aes-gcm"
)

// codec encrypts payloads with AES-256 in Galois/Counter Mode. It implements [converter.PayloadCodec].
type codec struct{ aead cipher.AEAD }

func newCodec(key string) (codec, error) {
	derived, err := hkdf.Key(sha256.New, []byte(key), nil, "loki-temporal payloads", 32)
	if err != nil {
		return codec{}, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return codec{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return codec{aead}, err
}

// Encode implements [converter.PayloadCodec].
func (c codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	sealed := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		data, err := proto.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("encrypting a payload: %w", err)
		}
		sealed[i] = &commonpb.Payload{
			Metadata: map[string][]byte{encodingKey: []byte(encrypted)},
			Data:     c.aead.Seal(nil, nil, data, nil),
		}
	}
	return sealed, nil
}

// Decode implements [converter.PayloadCodec].
func (c codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	opened := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		if string(p.GetMetadata()[encodingKey]) != encrypted {
			opened[i] = p
			continue
		}
		data, err := c.aead.Open(nil, nil, p.GetData(), nil)
		if err != nil {
			return nil, errors.New("a payload was encrypted with another " + KeyVariable + " than the one here")
		}
		opened[i] = &commonpb.Payload{}
		if err := proto.Unmarshal(data, opened[i]); err != nil {
			return nil, fmt.Errorf("decrypting a payload: %w", err)
		}
	}
	return opened, nil
}
