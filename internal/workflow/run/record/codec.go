// Package record is the form in which stores keep what they are given of runs: documents, without secrets, and
// long strings apart from them.
//
// A document is a value or a JSON text in the form in which it is stored. Strings of 1 KiB and more in it are
// taken out and kept as blobs, by the hash of their content: the same tool result in a step, an event and the
// state is stored once.
//
// The state of a run is stored by key. A super-step writes only what it changed, and of a list or a text that
// grew only what was added, so that a store grows with what happens and not with what there is. The value of a
// key after some super-step is read from its last full document, followed by the additions since.
package record

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"strconv"

	"loki/internal/base/value"
)

// A document is a CRC-32C of all that follows, in little endian, and then either a
// value, as a tag and its content, or a JSON text:
//
//	null, false, true   the tag alone
//	int                 zigzag varint
//	uint                uvarint
//	float               8 bytes, IEEE 754, little endian
//	string              uvarint of the length, the bytes
//	blob                the hash of a string that is stored separately
//	list                uvarint of the length, the elements
//	object              uvarint of the length, names (string or blob) and values
//	JSON                see json.go
//
// The form is not JSON, so no value can be taken for a reference, and everything
// comes back as it was: floats by their bits, strings that are no UTF-8 too.
const (
	tagNull = iota
	tagFalse
	tagTrue
	tagInt
	tagUint
	tagFloat
	tagString
	tagBlob
	tagList
	tagObject
	tagJSON
	tagEvents
)

const (
	crcSize  = 4
	hashSize = 16
	// blobFrom is the length from which a string is kept as a blob.
	blobFrom = 1024
)

// Hash is the first half of the SHA-256 of a blob.
type Hash [hashSize]byte

// HashOf returns the hash of a blob.
func HashOf(s []byte) Hash {
	sum := sha256.Sum256(s)
	return Hash(sum[:hashSize])
}

// Blob is a string that is stored apart from the document it is in.
type Blob struct {
	Hash Hash
	Data []byte // not to be changed
}

// Document is an encoded document with the blobs it refers to.
type Document struct {
	Data  []byte
	Blobs []Blob
	hide  Sealer
}

// Sealer returns a text, JSON or not, as it is stored, such as without secrets. A nil one changes nothing.
type Sealer func(text string) string

// Text returns a text as it is stored.
func (f Sealer) Text(text string) string {
	if f == nil {
		return text
	}
	return f(text)
}

// Bytes is Text for bytes.
func (f Sealer) Bytes(text []byte) []byte {
	if f == nil {
		return text
	}
	return []byte(f(string(text)))
}

// ErrDamaged says that a document is not what was written.
var ErrDamaged = errors.New("the content is damaged")

// checksum uses the table that hash/crc32 has, and builds on first use.
func checksum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// newDocument returns a document with room for its checksum.
func (f Sealer) newDocument(size int) Document {
	return Document{Data: make([]byte, crcSize, crcSize+size), hide: f}
}

// seal sets the checksum of a document that is complete.
func (d *Document) seal() Document {
	binary.LittleEndian.PutUint32(d.Data, checksum(d.Data[crcSize:]))
	return *d
}

// unseal returns the content of a document after checking it.
func unseal(data []byte) ([]byte, error) {
	if len(data) < crcSize || binary.LittleEndian.Uint32(data) != checksum(data[crcSize:]) {
		return nil, ErrDamaged
	}
	return data[crcSize:], nil
}

// EncodeValue returns v as a document.
func (f Sealer) EncodeValue(v value.Value) Document {
	d := f.newDocument(64)
	d.value(v)
	return d.seal()
}

func (d *Document) uvarint(n uint64) { d.Data = binary.AppendUvarint(d.Data, n) }

func (d *Document) string(s string) {
	s = d.hide.Text(s)
	if len(s) < blobFrom {
		d.Data = append(d.Data, tagString)
		d.uvarint(uint64(len(s)))
		d.Data = append(d.Data, s...)
		return
	}
	d.Data = append(d.Data, tagBlob)
	d.keep([]byte(s))
}

// reference appends the hash of s and keeps s with the document.
func (d *Document) reference(s []byte) { d.keep(d.hide.Bytes(s)) }

// keep is reference for a text that is as it is stored.
func (d *Document) keep(s []byte) {
	h := HashOf(s)
	d.Data = append(d.Data, h[:]...)
	d.Blobs = append(d.Blobs, Blob{h, s})
}

func (d *Document) value(v value.Value) {
	switch v.Kind() {
	case value.Null:
		d.Data = append(d.Data, tagNull)
	case value.Bool:
		b, _ := v.AsBool()
		d.Data = append(d.Data, tagFalse)
		if b {
			d.Data[len(d.Data)-1] = tagTrue
		}
	case value.Int:
		n, _ := v.AsInt()
		d.Data = binary.AppendVarint(append(d.Data, tagInt), n)
	case value.Uint:
		n, _ := strconv.ParseUint(v.Text(), 10, 64)
		d.Data = binary.AppendUvarint(append(d.Data, tagUint), n)
	case value.Float:
		f, _ := v.AsFloat()
		d.Data = binary.LittleEndian.AppendUint64(append(d.Data, tagFloat), math.Float64bits(f))
	case value.String:
		s, _ := v.AsString()
		d.string(s)
	case value.ListKind:
		l, _ := v.AsList()
		d.Data = append(d.Data, tagList)
		d.uvarint(uint64(l.Len()))
		for _, e := range l.All() {
			d.value(e)
		}
	default:
		o := v.AsObject()
		d.Data = append(d.Data, tagObject)
		d.uvarint(uint64(o.Len()))
		for name, e := range o.All() {
			d.string(name)
			d.value(e)
		}
	}
}

// Reader reads documents.
type Reader struct {
	Read func(Hash) (string, error) // returns the content of a blob, as it was before it was sealed
	Show func(text string) string   // does so for a text in a document; nil changes nothing
}

// Text returns a text as it was before it was sealed.
func (r Reader) Text(text string) string {
	if r.Show == nil {
		return text
	}
	return r.Show(text)
}

// Value returns the value of a document.
func (r Reader) Value(data []byte) (value.Value, error) {
	content, err := unseal(data)
	if err != nil {
		return value.Value{}, err
	}
	d := decoder{data: content, blobs: r}
	v := d.value()
	if d.err == nil && len(d.data) > 0 {
		d.err = ErrDamaged
	}
	return v, d.err
}

// decoder reads a document. After an error it returns zero values only.
type decoder struct {
	data  []byte
	blobs Reader
	err   error
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = ErrDamaged
	}
	d.data = nil
}

func (d *decoder) bytes(n int) []byte {
	if n < 0 || n > len(d.data) {
		d.fail()
		return nil
	}
	b := d.data[:n]
	d.data = d.data[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (d *decoder) uvarint() uint64 {
	n, size := binary.Uvarint(d.data)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.data = d.data[size:]
	return n
}

// length reads the number of things of which each takes at least size bytes.
func (d *decoder) length(size int) int {
	n := d.uvarint()
	if n > uint64(len(d.data)/size) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) reference() string {
	h := d.bytes(hashSize)
	if d.err != nil {
		return ""
	}
	s, err := d.blobs.Read(Hash(h))
	if err != nil {
		d.err, d.data = err, nil
	}
	return s
}

func (d *decoder) string(tag byte) string {
	switch tag {
	case tagString:
		return d.blobs.Text(string(d.bytes(d.length(1))))
	case tagBlob:
		return d.reference()
	}
	d.fail()
	return ""
}

func (d *decoder) value() value.Value {
	tag := d.byte()
	if d.err != nil {
		return value.Value{}
	}
	switch tag {
	case tagNull:
		return value.Value{}
	case tagFalse, tagTrue:
		return value.Of(tag == tagTrue)
	case tagInt:
		n, size := binary.Varint(d.data)
		if size <= 0 {
			d.fail()
			return value.Value{}
		}
		d.data = d.data[size:]
		return value.Of(n)
	case tagUint:
		return value.Of(d.uvarint())
	case tagFloat:
		if b := d.bytes(8); len(b) == 8 {
			return value.Of(math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
		return value.Value{}
	case tagList:
		items := make([]value.Value, d.length(1))
		for i := range items {
			items[i] = d.value()
		}
		return value.ListOf(items...).Value()
	case tagObject:
		members := make([]value.Member, d.length(3))
		for i := range members {
			members[i].Name = d.string(d.byte())
			members[i].Value = d.value()
		}
		return value.ObjectOf(members...).Value()
	}
	return value.Of(d.string(tag))
}
