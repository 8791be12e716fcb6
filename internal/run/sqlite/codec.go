package sqlite

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"strconv"

	"loki/internal/value"
)

// A document is a CRC-32C of all that follows, in little endian, and then either a
// value, as a tag and its content, or a JSON text:
//
//	null, false, true   the tag alone
//	int                 zigzag varint
//	uint                uvarint
//	float               8 bytes, IEEE 754, little endian
//	string              uvarint of the length, the bytes
//	blob                the hash of a string that is kept apart
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

// hash is the first half of the SHA-256 of a blob.
type hash [hashSize]byte

func hashOf(s []byte) hash {
	sum := sha256.Sum256(s)
	return hash(sum[:hashSize])
}

// blob is a string that is kept apart from the document it is in.
type blob struct {
	hash hash
	data []byte // not to be changed
}

// document is an encoded document with the blobs it refers to.
type document struct {
	data  []byte
	blobs []blob
	hide  sealer
}

// sealer returns a text as it is stored, see [Options.Seal]. A nil one changes nothing.
type sealer func(text string) string

func (f sealer) text(text string) string {
	if f == nil {
		return text
	}
	return f(text)
}

func (f sealer) bytes(text []byte) []byte {
	if f == nil {
		return text
	}
	return []byte(f(string(text)))
}

// errDamaged says that something in the file is not what was written.
var errDamaged = errors.New("the content is damaged")

// checksum uses the table that hash/crc32 has, and builds on first use.
func checksum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// newDocument returns a document with room for its checksum.
func (f sealer) newDocument(size int) document {
	return document{data: make([]byte, crcSize, crcSize+size), hide: f}
}

// seal sets the checksum of a document that is complete.
func (d *document) seal() document {
	binary.LittleEndian.PutUint32(d.data, checksum(d.data[crcSize:]))
	return *d
}

// unseal returns the content of a document after checking it.
func unseal(data []byte) ([]byte, error) {
	if len(data) < crcSize || binary.LittleEndian.Uint32(data) != checksum(data[crcSize:]) {
		return nil, errDamaged
	}
	return data[crcSize:], nil
}

// encodeValue returns v as a document.
func (f sealer) encodeValue(v value.Value) document {
	d := f.newDocument(64)
	d.value(v)
	return d.seal()
}

func (d *document) uvarint(n uint64) { d.data = binary.AppendUvarint(d.data, n) }

func (d *document) string(s string) {
	s = d.hide.text(s)
	if len(s) < blobFrom {
		d.data = append(d.data, tagString)
		d.uvarint(uint64(len(s)))
		d.data = append(d.data, s...)
		return
	}
	d.data = append(d.data, tagBlob)
	d.keep([]byte(s))
}

// reference appends the hash of s and keeps s with the document.
func (d *document) reference(s []byte) { d.keep(d.hide.bytes(s)) }

// keep is reference for a text that is as it is stored.
func (d *document) keep(s []byte) {
	h := hashOf(s)
	d.data = append(d.data, h[:]...)
	d.blobs = append(d.blobs, blob{h, s})
}

func (d *document) value(v value.Value) {
	switch v.Kind() {
	case value.Null:
		d.data = append(d.data, tagNull)
	case value.Bool:
		b, _ := v.AsBool()
		d.data = append(d.data, tagFalse)
		if b {
			d.data[len(d.data)-1] = tagTrue
		}
	case value.Int:
		n, _ := v.AsInt()
		d.data = binary.AppendVarint(append(d.data, tagInt), n)
	case value.Uint:
		n, _ := strconv.ParseUint(v.Text(), 10, 64)
		d.data = binary.AppendUvarint(append(d.data, tagUint), n)
	case value.Float:
		f, _ := v.AsFloat()
		d.data = binary.LittleEndian.AppendUint64(append(d.data, tagFloat), math.Float64bits(f))
	case value.String:
		s, _ := v.AsString()
		d.string(s)
	case value.ListKind:
		l, _ := v.AsList()
		d.data = append(d.data, tagList)
		d.uvarint(uint64(l.Len()))
		for _, e := range l.All() {
			d.value(e)
		}
	default:
		o := v.AsObject()
		d.data = append(d.data, tagObject)
		d.uvarint(uint64(o.Len()))
		for name, e := range o.All() {
			d.string(name)
			d.value(e)
		}
	}
}

// blobReader reads documents.
type blobReader struct {
	read func(hash) (string, error) // returns the content of a blob, as it was before it was sealed
	show func(text string) string   // does so for a text in a document; nil changes nothing
}

func (r blobReader) text(text string) string {
	if r.show == nil {
		return text
	}
	return r.show(text)
}

// decodeValue returns the value of a document.
func decodeValue(data []byte, blobs blobReader) (value.Value, error) {
	content, err := unseal(data)
	if err != nil {
		return value.Value{}, err
	}
	d := decoder{data: content, blobs: blobs}
	v := d.value()
	if d.err == nil && len(d.data) > 0 {
		d.err = errDamaged
	}
	return v, d.err
}

// decoder reads a document. After an error it returns zero values only.
type decoder struct {
	data  []byte
	blobs blobReader
	err   error
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = errDamaged
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
	s, err := d.blobs.read(hash(h))
	if err != nil {
		d.err, d.data = err, nil
	}
	return s
}

func (d *decoder) string(tag byte) string {
	switch tag {
	case tagString:
		return d.blobs.text(string(d.bytes(d.length(1))))
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
