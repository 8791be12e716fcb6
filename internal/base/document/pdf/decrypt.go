package pdf

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/md5"
	"crypto/rc4"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"errors"
)

var errPassword = errors.New("the PDF file is protected by a password")

// decryption decrypts the streams of a file that can be read without a password, but not changed. Strings
// outside of them say nothing about the text.
type decryption struct {
	key    []byte
	aes    bool
	direct bool // the key is that of every stream
}

// padding replaces an empty password.
const padding = "\x28\xbf\x4e\x5e\x4e\x75\x8a\x41\x64\x00\x4e\x56\xff\xfa\x01\x08\x2e\x2e\x00\xb6\xd0\x68\x3e\x80\x2f\x0c\xa9\xfe\x64\x53\x69\x7a"

// decrypt decrypts all streams, by the standard security handler of ISO 32000.
func (f *file) decrypt(trailer dict, defs []definition) error {
	enc := f.dict(trailer["Encrypt"])
	if enc == nil || f.name(enc["Filter"]) != "Standard" {
		return errPassword
	}
	version := f.numberOr(enc["V"], 0)
	method := name("V2")
	if version >= 4 {
		method = f.name(f.dict(f.dict(enc["CF"])[f.name(enc["StmF"])])["CFM"])
	}
	d := &decryption{aes: method == "AESV2" || method == "AESV3", direct: method == "AESV3"}
	switch {
	case f.name(enc["StmF"]) == "Identity" && version >= 4:
		return nil
	case method == "AESV3":
		d.key = f.key256(enc)
	case method == "V2" || method == "AESV2":
		d.key = f.key128(enc, trailer)
	}
	if d.key == nil {
		return errPassword
	}
	for _, def := range defs {
		if s, ok := def.obj.(*stream); ok && s.dict["Type"] != name("XRef") {
			s.raw = d.stream(def.id, s.raw)
		}
	}
	return nil
}

func (f *file) text(obj any) string {
	s, _ := f.resolve(obj).(string)
	return s
}

// key128 returns the key of revisions 2 to 4, nil if there is a password.
func (f *file) key128(enc, trailer dict) []byte {
	revision := f.numberOr(enc["R"], 2)
	n := 5
	if revision >= 3 {
		n = min(max(int(f.numberOr(enc["Length"], 128))/8, 5), 16)
	}
	var id string
	if ids := f.array(trailer["ID"]); len(ids) > 0 {
		id = f.text(ids[0])
	}
	owner, user := f.text(enc["O"]), f.text(enc["U"])
	if len(owner) < 32 || len(user) < 32 {
		return nil
	}
	sum := md5.New()
	sum.Write([]byte(padding + owner[:32]))
	_ = binary.Write(sum, binary.LittleEndian, uint32(int64(f.numberOr(enc["P"], 0)))) // to a hash: no error
	sum.Write([]byte(id))
	if revision >= 4 && f.resolve(enc["EncryptMetadata"]) == false {
		sum.Write([]byte{0xff, 0xff, 0xff, 0xff})
	}
	key := sum.Sum(nil)[:n]
	if revision < 3 {
		if string(xorRC4(key, []byte(padding))) != user[:32] {
			return nil
		}
		return key
	}
	for range 50 {
		again := md5.Sum(key)
		key = again[:n]
	}
	check := md5.Sum([]byte(padding + id))
	sealed := check[:]
	for i := range 20 {
		changed := bytes.Clone(key)
		for j := range changed {
			changed[j] ^= byte(i)
		}
		sealed = xorRC4(changed, sealed)
	}
	if string(sealed) != user[:16] {
		return nil
	}
	return key
}

// key256 returns the key of revisions 5 and 6, nil if there is a password.
func (f *file) key256(enc dict) []byte {
	hash := hash256
	if f.numberOr(enc["R"], 0) == 5 {
		hash = func(salt string) []byte { sum := sha256.Sum256([]byte(salt)); return sum[:] }
	}
	user, sealed := f.text(enc["U"]), f.text(enc["UE"])
	if len(user) < 48 || len(sealed) < 32 || string(hash(user[32:40])) != user[:32] {
		return nil
	}
	block, err := aes.NewCipher(hash(user[40:48]))
	if err != nil {
		return nil
	}
	key := []byte(sealed[:32])
	cipher.NewCBCDecrypter(block, make([]byte, aes.BlockSize)).CryptBlocks(key, key)
	return key
}

// hash256 is algorithm 2.B of ISO 32000-2, for an empty password.
func hash256(salt string) []byte {
	sum := sha256.Sum256([]byte(salt))
	key := sum[:]
	for round := 0; ; round++ {
		data := bytes.Repeat(key, 64)
		block, err := aes.NewCipher(key[:16])
		if err != nil {
			return nil
		}
		cipher.NewCBCEncrypter(block, key[16:32]).CryptBlocks(data, data)
		rest := 0
		for _, c := range data[:16] {
			rest += int(c)
		}
		switch rest % 3 {
		case 0:
			next := sha256.Sum256(data)
			key = next[:]
		case 1:
			next := sha512.Sum384(data)
			key = next[:]
		case 2:
			next := sha512.Sum512(data)
			key = next[:]
		}
		if round >= 63 && int(data[len(data)-1]) <= round-31 {
			return key[:32]
		}
	}
}

func xorRC4(key, data []byte) []byte {
	c, err := rc4.NewCipher(key)
	if err != nil {
		return nil
	}
	out := make([]byte, len(data))
	c.XORKeyStream(out, data)
	return out
}

// stream decrypts the data of the stream with the number id.
func (d *decryption) stream(id ref, data []byte) []byte {
	key := d.key
	if !d.direct {
		salted := append(bytes.Clone(key), byte(id), byte(id>>8), byte(id>>16), 0, 0)
		if d.aes {
			salted = append(salted, "sAlT"...)
		}
		sum := md5.Sum(salted)
		key = sum[:min(len(key)+5, 16)]
	}
	if !d.aes {
		return xorRC4(key, data)
	}
	size := len(data) / aes.BlockSize * aes.BlockSize
	block, err := aes.NewCipher(key)
	if err != nil || size < 2*aes.BlockSize {
		return nil
	}
	out := bytes.Clone(data[aes.BlockSize:size])
	cipher.NewCBCDecrypter(block, data[:aes.BlockSize]).CryptBlocks(out, out)
	if pad := int(out[len(out)-1]); pad <= aes.BlockSize && pad <= len(out) {
		out = out[:len(out)-pad]
	}
	return out
}
