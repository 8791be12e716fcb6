package telemetry

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"strings"
	"time"

	"loki/internal/llm/event/telemetry/metrics"
)

// The functions of this file write the protobuf messages of OTLP, field by field. The
// numbers are those of opentelemetry/proto/trace/v1/trace.proto, metrics/v1/metrics.proto and the
// files they import, version 1.

// Wire types of protobuf.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

func appendTag(b []byte, field, wireType int) []byte {
	return binary.AppendUvarint(b, uint64(field)<<3|uint64(wireType))
}

func appendBytes[T string | []byte](b []byte, field int, data T) []byte {
	b = appendTag(b, field, wireBytes)
	b = binary.AppendUvarint(b, uint64(len(data)))
	return append(b, data...)
}

// appendText writes a string, which is left out when empty. Collectors refuse a whole
// request for a byte that is not UTF-8.
func appendText(b []byte, field int, text string) []byte {
	if text == "" {
		return b
	}
	return appendString(b, field, text)
}

// appendString is appendText for a field that is written when empty too.
func appendString(b []byte, field int, text string) []byte {
	return appendBytes(b, field, strings.ToValidUTF8(text, "\uFFFD"))
}

func appendVarint(b []byte, field int, n uint64) []byte {
	return binary.AppendUvarint(appendTag(b, field, wireVarint), n)
}

func appendFixed(b []byte, field int, n uint64) []byte {
	return binary.LittleEndian.AppendUint64(appendTag(b, field, wireFixed64), n)
}

func appendTime(b []byte, field int, t time.Time) []byte {
	return appendFixed(b, field, uint64(t.UnixNano()))
}

// appendAttrs writes a list of KeyValue.
func appendAttrs(b []byte, field int, attrs []attr) []byte {
	for _, a := range attrs {
		kv := appendString(nil, 1, a.key)
		kv = appendBytes(kv, 2, appendAnyValue(nil, a.value))
		b = appendBytes(b, field, kv)
	}
	return b
}

// appendAnyValue writes an AnyValue.
func appendAnyValue(b []byte, value any) []byte {
	switch v := value.(type) {
	case string:
		return appendString(b, 1, v)
	case bool:
		n := uint64(0)
		if v {
			n = 1
		}
		return appendVarint(b, 2, n)
	case int:
		return appendVarint(b, 3, uint64(v)) // negative numbers are their two's complement
	case []string:
		var list []byte
		for _, s := range v {
			list = appendBytes(list, 1, appendString(nil, 1, s))
		}
		return appendBytes(b, 5, list)
	}
	panic("telemetry: an attribute of another type")
}

// append writes a Span.
func (s *span) append(b []byte) []byte {
	b = appendBytes(b, 1, s.trace[:])
	b = appendBytes(b, 2, s.id[:])
	b = appendText(b, 3, s.state)
	if s.parent != [8]byte{} {
		b = appendBytes(b, 4, s.parent[:])
	}
	b = appendText(b, 5, s.name)
	b = appendVarint(b, 6, uint64(s.kind))
	b = appendTime(b, 7, s.start)
	b = appendTime(b, 8, s.end)
	b = appendAttrs(b, 9, s.attrs)
	for _, m := range s.marks {
		ev := appendTime(nil, 1, m.time)
		ev = appendText(ev, 2, m.name)
		ev = appendAttrs(ev, 3, m.attrs)
		b = appendBytes(b, 11, ev)
	}
	if s.failed {
		status := appendText(nil, 2, s.message)
		b = appendBytes(b, 15, appendVarint(status, 3, 2)) // STATUS_CODE_ERROR
	}
	// The low byte is the W3C flags, 1 for sampled; the others say whether the parent is
	// known to be of another program.
	flags := uint32(0x101)
	if s.remoteParent {
		flags |= 0x200
	}
	return binary.LittleEndian.AppendUint32(appendTag(b, 16, wireFixed32), flags)
}

// appendMetric writes a Metric: a cumulative Sum or Histogram. Attributes without a value are left out.
func appendMetric(r metrics.Reading, start, now time.Time) []byte {
	var data []byte
	for _, p := range r.Points {
		point := appendTime(appendTime(nil, 2, start), 3, now)
		attrs := 7
		if r.Histogram {
			attrs = 9
			point = appendFixed(appendFixed(point, 4, p.Count), 5, math.Float64bits(p.Value))
			var buckets, bounds []byte
			above := p.Count
			for i, n := range p.Buckets {
				buckets = binary.LittleEndian.AppendUint64(buckets, n)
				bounds = binary.LittleEndian.AppendUint64(bounds, math.Float64bits(r.Bounds[i]))
				above -= n
			}
			buckets = binary.LittleEndian.AppendUint64(buckets, above)
			point = appendBytes(appendBytes(point, 6, buckets), 7, bounds)
		} else {
			point = appendFixed(point, 6, uint64(p.Value)) // as_int: only whole numbers are counted
		}
		for i, value := range p.Values {
			if value != "" {
				point = appendAttrs(point, attrs, []attr{{r.Labels[i], value}})
			}
		}
		data = appendBytes(data, 1, point)
	}
	data = appendVarint(data, 2, 2) // AGGREGATION_TEMPORALITY_CUMULATIVE
	kind := 9
	if !r.Histogram {
		kind = 7
		data = appendVarint(data, 3, 1) // is_monotonic
	}
	b := appendText(appendText(appendText(nil, 1, r.Name), 2, r.Help), 3, r.Unit)
	return appendBytes(b, kind, data)
}

// scopeName is the instrumentation scope of all spans and metrics.
const scopeName = "loki"

// appendRequest writes an ExportTraceServiceRequest of encoded spans, or an ExportMetricsServiceRequest of encoded metrics, which has the
// same fields.
func appendRequest(b, resource []byte, version string, spans [][]byte) []byte {
	scope := appendBytes(nil, 1, scopeName)
	scope = appendText(scope, 2, version)
	size := 0
	for _, s := range spans {
		size += len(s) + 8
	}
	list := appendBytes(make([]byte, 0, size+len(scope)+8), 1, scope)
	for _, s := range spans {
		list = appendBytes(list, 2, s)
	}
	body := appendBytes(make([]byte, 0, len(resource)+len(list)+16), 1, resource)
	body = appendBytes(body, 2, list)
	return appendBytes(b, 1, body)
}

var errWire = errors.New("malformed protobuf")

// readResponse reads what an ExportTraceServiceResponse says was not taken.
func readResponse(b []byte) (rejected int, message string, err error) {
	err = eachField(b, func(field int, _ uint64, partial []byte) error {
		if field != 1 {
			return nil
		}
		return eachField(partial, func(field int, n uint64, data []byte) error {
			switch field {
			case 1:
				rejected = int(int64(n))
			case 2:
				message = string(data)
			}
			return nil
		})
	})
	return max(rejected, 0), message, err
}

// eachField calls fn with each field of a message: n holds a varint, data bytes.
func eachField(b []byte, fn func(field int, n uint64, data []byte) error) error {
	for len(b) > 0 {
		tag, size := binary.Uvarint(b)
		if size <= 0 || tag>>3 == 0 || bits.Len64(tag) > 32 {
			return errWire
		}
		b = b[size:]
		var n uint64
		var data []byte
		switch tag & 7 {
		case wireVarint:
			if n, size = binary.Uvarint(b); size <= 0 {
				return errWire
			}
		case wireFixed64:
			size = 8
		case wireFixed32:
			size = 4
		case wireBytes:
			length, prefix := binary.Uvarint(b)
			if prefix <= 0 || length > uint64(len(b)-prefix) {
				return errWire
			}
			size = prefix + int(length)
			data = b[prefix:size]
		default:
			return errWire
		}
		if size > len(b) {
			return errWire
		}
		if err := fn(int(tag>>3), n, data); err != nil {
			return err
		}
		b = b[size:]
	}
	return nil
}
