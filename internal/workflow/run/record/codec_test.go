package record

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"loki/internal/base/value"
)

// store of the blobs of documents.
type shelf map[Hash]string

func (s shelf) put(d Document) {
	for _, b := range d.Blobs {
		s[b.Hash] = string(b.Data)
	}
}

func (s shelf) read(h Hash) (string, error) {
	text, ok := s[h]
	if !ok {
		return "", ErrDamaged
	}
	return text, nil
}

func TestValueDocument(t *testing.T) {
	long := strings.Repeat("long ", 1000)
	for _, v := range []value.Value{
		{},
		value.Of(true), value.Of(0), value.Of(-1), value.Of(int64(math.MinInt64)), value.Of(uint64(math.MaxUint64)),
		value.Of(0.0), value.Of(math.Copysign(0, -1)), value.Of(1e300), value.Of(""), value.Of("\xff\x00"),
		value.Of(long), value.Of(long[:blobFrom]), value.Of(long[:blobFrom-1]),
		value.List{}.Value(), value.ListOf(value.Of(long), value.Of(long)).Value(), value.ObjectOf().Value(),
		value.ObjectOf(value.Member{Name: long, Value: value.Of(1)}, value.Member{Name: "a", Value: value.Of(long)}).Value(),
	} {
		blobs := shelf{}
		d := Sealer(nil).EncodeValue(v)
		blobs.put(d)
		got, err := (Reader{Read: blobs.read}).Value(d.Data)
		if err != nil || !identical(got, v) {
			t.Errorf("%.60s came back as %.60s, %v", v, got, err)
		}
		if len(d.Data) > blobFrom+100 {
			t.Errorf("%.60s takes %d bytes", v, len(d.Data))
		}
	}
}

func TestIdentical(t *testing.T) {
	o := func(kv ...any) value.Value {
		var m []value.Member
		for i := 0; i < len(kv); i += 2 {
			m = append(m, value.Member{Name: kv[i].(string), Value: value.Of(kv[i+1].(int))})
		}
		return value.ObjectOf(m...).Value()
	}
	for _, tt := range []struct {
		a, b value.Value
		want bool
	}{
		{o("a", 1, "b", 2), o("a", 1, "b", 2), true},
		{o("a", 1, "b", 2), o("b", 2, "a", 1), false},
		{o("a", 1), o("a", 1, "b", 2), false},
		{value.Of(0.0), value.Of(math.Copysign(0, -1)), false},
		{value.Of(1), value.Of(1.0), false},
		{value.ListOf(o("a", 1)).Value(), value.ListOf(o("a", 1)).Value(), true},
		{value.ListOf(o("a", 1)).Value(), value.ListOf(o("a", 1), o()).Value(), false},
	} {
		if identical(tt.a, tt.b) != tt.want || identical(tt.b, tt.a) != tt.want {
			t.Errorf("identical(%s, %s) is not %v", tt.a, tt.b, tt.want)
		}
	}
}

// TestSameTextIsOneBlob checks that a text is the same blob wherever it is, and
// however it is escaped.
func TestSameTextIsOneBlob(t *testing.T) {
	text := strings.Repeat("<é> \"quoted\" \U0001F600\n", 200)
	escaped, err := json.Marshal(text) // escapes < and >
	if err != nil {
		t.Fatal(err)
	}
	blobs := shelf{}
	blobs.put(Sealer(nil).EncodeValue(value.ListOf(value.Of(text)).Value()))
	blobs.put(Sealer(nil).EncodeJSON(escaped))
	blobs.put(Sealer(nil).EncodeJSON([]byte(`{"a":[` + value.Of(text).String() + `,"` + text[:3] + `"]}`)))
	blobs.put(Sealer(nil).EncodeJSON([]byte(strings.ReplaceAll(string(escaped), `\U0001F600`, `\ud83d\ude00`))))
	if len(blobs) != 1 {
		t.Errorf("%d blobs", len(blobs))
	}
}

func TestDamagedDocument(t *testing.T) {
	d := Sealer(nil).EncodeValue(value.ListOf(value.Of(1), value.Of("text")).Value())
	for i := range d.Data {
		for _, bit := range []byte{1, 128} {
			data := bytes.Clone(d.Data)
			data[i] ^= bit
			if v, err := (Reader{Read: shelf{}.read}).Value(data); err == nil {
				t.Errorf("with byte %d changed it is read as %s", i, v)
			}
		}
		if _, err := (Reader{Read: shelf{}.read}).Value(d.Data[:i]); err == nil {
			t.Errorf("the first %d bytes are read", i)
		}
	}
}

func FuzzValueDocument(f *testing.F) {
	for _, text := range []string{
		`null`, `[1,1.0,-0.0,18446744073709551615,"a",{"b":[],"a":{}}]`, `{"":"` + strings.Repeat("x", 2000) + `"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		// Anything may be in a file, and must not do worse than fail.
		sealed := Document{Data: append(make([]byte, crcSize), text...)}
		sealed.seal()
		if v, err := (Reader{Read: shelf{}.read}).Value(sealed.Data); err == nil {
			_ = v.String()
		}
		_, _ = (Reader{Read: shelf{}.read}).JSON(sealed.Data)
		d := decoder{data: text, blobs: Reader{Read: shelf{}.read}}
		d.event(func(Place) (value.Value, error) { return value.Value{}, nil })

		v, err := value.ParseJSON(text)
		if err != nil {
			return
		}
		blobs := shelf{}
		encoded := Sealer(nil).EncodeValue(v)
		blobs.put(encoded)
		got, err := (Reader{Read: blobs.read}).Value(encoded.Data)
		if err != nil || !identical(got, v) {
			t.Errorf("%s came back as %s, %v", v, got, err)
		}
	})
}

func FuzzJSONDocument(f *testing.F) {
	long := strings.Repeat("x", 2000)
	for _, text := range []string{
		`null`, `"` + long + `"`, `{"` + long + `":"` + strings.Repeat(`\\\"`, 1000) + `"}`,
		`["` + strings.Repeat(`\ud83d\ude00\ud83d\u00e9`, 200) + `",1]`, `"` + long + `\`, `"` + long + `\u12"`, `"` + long + `\x"`,
		`"` + strings.Repeat("\xff", 2000) + `"`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		blobs := shelf{}
		d := Sealer(nil).EncodeJSON(text)
		blobs.put(d)
		got, err := (Reader{Read: blobs.read}).JSON(d.Data)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if !json.Valid(text) {
			return
		}
		var want, again any
		if err := json.Unmarshal(text, &want); err != nil {
			return // too deep, or a number out of range
		}
		if err := json.Unmarshal(got, &again); err != nil {
			t.Fatalf("%q came back as %q: %v", text, got, err)
		}
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(again)
		if !bytes.Equal(a, b) {
			t.Errorf("%q came back as %q", text, got)
		}
	})
}
