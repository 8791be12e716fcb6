package pdf

import (
	"bytes"
	"compress/flate"
	"encoding/ascii85"
	"io"
)

// read returns the data of a stream, without its filters. What a damaged stream holds up to the damage
// counts. A stream with a filter for pictures is empty.
func (f *file) read(s *stream) ([]byte, error) {
	filters, params := f.list(s.dict["Filter"], s.dict["F"]), f.list(s.dict["DecodeParms"], s.dict["DP"])
	data := s.raw
	if f.left -= len(data); f.left < 0 {
		return nil, errTooMuch
	}
	for i, filter := range filters {
		var param dict
		if i < len(params) {
			param = f.dict(params[i])
		}
		var r io.Reader
		switch f.name(filter) {
		case "FlateDecode", "Fl":
			r = inflate(data)
		case "LZWDecode", "LZW":
			r = bytes.NewReader(unlzw(data, f.numberOr(param["EarlyChange"], 1) != 0, f.left))
		case "ASCII85Decode", "A85":
			end := bytes.Index(data, []byte("~>"))
			if end < 0 {
				end = len(data)
			}
			r = ascii85.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data[:end], []byte("<~"))))
		case "ASCIIHexDecode", "AHx":
			r = bytes.NewReader(unhex(data))
		case "RunLengthDecode", "RL":
			r = bytes.NewReader(unrun(data, f.left))
		case "Crypt":
			continue
		default:
			return nil, nil
		}
		var err error
		if data, err = f.readAll(r); err != nil {
			return nil, err
		}
		data = f.unpredict(data, param)
	}
	return data, nil
}

// list returns the elements of the first of two objects that is there, or itself if it is not an array.
func (f *file) list(a, b any) array {
	obj := f.resolve(a)
	if obj == nil {
		obj = f.resolve(b)
	}
	switch o := obj.(type) {
	case nil:
		return nil
	case array:
		return o
	}
	return array{obj}
}

// readAll reads until the end or the first error of r.
func (f *file) readAll(r io.Reader) ([]byte, error) {
	var out bytes.Buffer
	for {
		n, err := io.CopyN(&out, r, 1<<20)
		if f.left -= int(n); f.left < 0 || out.Len() > maxStream {
			return nil, errTooMuch
		}
		if f.ctx.Err() != nil {
			return nil, f.ctx.Err()
		}
		if err != nil {
			return out.Bytes(), nil
		}
	}
}

// inflate reads data of zlib without its checksum, which is often wrong.
func inflate(data []byte) io.Reader {
	data = bytes.TrimLeft(data, "\r\n")
	if len(data) >= 2 && data[0]&0x0f == 8 && (int(data[0])<<8|int(data[1]))%31 == 0 {
		data = data[2:]
	}
	return flate.NewReader(bytes.NewReader(data))
}

// unpredict undoes the prediction of bytes from those to the left and above.
func (f *file) unpredict(data []byte, param dict) []byte {
	predictor := f.numberOr(param["Predictor"], 1)
	if predictor < 2 {
		return data
	}
	colors, bits, columns := f.numberOr(param["Colors"], 1), f.numberOr(param["BitsPerComponent"], 8), f.numberOr(param["Columns"], 1)
	width := int(colors * bits * columns / 8)
	step := max(1, int(colors*bits/8))
	if width <= 0 || width > len(data) || step > width || predictor < 10 {
		return data
	}
	out := make([]byte, 0, len(data))
	above := make([]byte, width)
	for ; len(data) > 1; data = data[min(len(data), width+1):] {
		row := make([]byte, width)
		copy(row, data[1:])
		for i := range row {
			var left, corner byte
			if i >= step {
				left, corner = row[i-step], above[i-step]
			}
			switch data[0] {
			case 1:
				row[i] += left
			case 2:
				row[i] += above[i]
			case 3:
				row[i] += byte((int(left) + int(above[i])) / 2)
			case 4:
				row[i] += paeth(left, above[i], corner)
			}
		}
		out = append(out, row...)
		above = row
	}
	return out
}

// paeth returns the neighbor that is the nearest to left + up - corner.
func paeth(left, up, corner byte) byte {
	distance := func(to byte) int {
		d := int(left) + int(up) - int(corner) - int(to)
		return max(d, -d)
	}
	switch l, u, c := distance(left), distance(up), distance(corner); {
	case l <= u && l <= c:
		return left
	case u <= c:
		return up
	}
	return corner
}

// unrun decodes runs of bytes.
func unrun(data []byte, limit int) []byte {
	var out []byte
	for i := 0; i < len(data) && len(out) <= limit; {
		n := int(data[i])
		i++
		switch {
		case n < 128:
			end := min(i+n+1, len(data))
			out = append(out, data[i:end]...)
			i = end
		case n > 128 && i < len(data):
			out = append(out, bytes.Repeat(data[i:i+1], 257-n)...)
			i++
		default:
			return out
		}
	}
	return out
}

// unlzw decodes LZW with codes of 9 to 12 bits. early is whether they grow one code before they must.
func unlzw(data []byte, early bool, limit int) []byte {
	const clearCode, endCode = 256, 257
	var (
		out        []byte
		table      [4096][]byte
		next       = 258
		width      = 9
		previous   []byte
		bits, have = 0, 0
		ahead      = 0
	)
	if early {
		ahead = 1
	}
	for i := range 256 {
		table[i] = []byte{byte(i)}
	}
	for _, c := range data {
		bits, have = bits<<8|int(c), have+8
		if have < width {
			continue
		}
		have -= width
		code := bits >> have & (1<<width - 1)
		bits &= 1<<have - 1
		switch {
		case code == clearCode:
			next, width, previous = 258, 9, nil
			continue
		case code == endCode, len(out) > limit:
			return out
		}
		var entry []byte
		switch {
		case code < 256 || code < next:
			entry = table[code]
		case code == next && previous != nil:
			entry = append(previous[:len(previous):len(previous)], previous[0])
		default:
			return out
		}
		out = append(out, entry...)
		if previous != nil && next < len(table) && len(entry) > 0 {
			table[next] = append(previous[:len(previous):len(previous)], entry[0])
			next++
		}
		previous = entry
		for width < 12 && next+ahead >= 1<<width {
			width++
		}
	}
	return out
}
