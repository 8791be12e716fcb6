package sqlite

import (
	"bytes"
	"cmp"
	"compress/flate"
	"fmt"
	"io"
	"strings"
)

// The first byte of a packed text.
const (
	plain = iota
	deflated
)

// packer packs texts. It belongs to one goroutine.
type packer struct {
	buf bytes.Buffer
	w   *flate.Writer
}

// pack returns text in fewer bytes, which are valid until the next call.
func (p *packer) pack(text string) []byte {
	p.buf.Reset()
	p.buf.WriteByte(deflated)
	if p.w == nil {
		p.w, _ = flate.NewWriter(&p.buf, flate.BestSpeed) // the level is valid
	} else {
		p.w.Reset(&p.buf)
	}
	_, _ = io.WriteString(p.w, text) // a bytes.Buffer takes everything
	_ = p.w.Close()
	if p.buf.Len() > len(text) {
		p.buf.Reset()
		p.buf.WriteByte(plain)
		p.buf.WriteString(text)
	}
	return p.buf.Bytes()
}

// maxText bounds what a damaged text can unpack to.
const maxText = 256 << 20

func unpack(data []byte) (string, error) {
	switch {
	case len(data) > 0 && data[0] == plain:
		return string(data[1:]), nil
	case len(data) > 0 && data[0] == deflated:
		var text strings.Builder
		n, err := io.Copy(&text, io.LimitReader(flate.NewReader(bytes.NewReader(data[1:])), maxText))
		if err == nil && n < maxText {
			return text.String(), nil
		}
		return "", fmt.Errorf("%w: a text: %w", errDamaged, cmp.Or(err, io.ErrShortBuffer))
	}
	return "", errDamaged
}
