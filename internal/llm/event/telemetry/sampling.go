package telemetry

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"

	"loki/internal/base/fault"
)

// parseTraceparent reads the span that the program was started from, as W3C Trace
// Context writes it: 00-<32 hex digits>-<16 hex digits>-<2 hex digits>. It is nil for
// anything else. https://www.w3.org/TR/trace-context/#traceparent-header
func parseTraceparent(text, state string) *span {
	parts := strings.Split(text, "-")
	if len(parts) < 4 || len(parts[0]) != 2 || len(parts[1]) != 32 || len(parts[2]) != 16 || len(parts[3]) != 2 {
		return nil
	}
	if parts[0] == "ff" || parts[0] == "00" && len(parts) != 4 || strings.ToLower(text) != text {
		return nil
	}
	s := &span{remote: true, state: state}
	var version, flags [1]byte
	for i, into := range [][]byte{version[:], s.trace[:], s.id[:], flags[:]} {
		if _, err := hex.Decode(into, []byte(parts[i])); err != nil {
			return nil
		}
	}
	if s.trace == [16]byte{} || s.id == [8]byte{} {
		return nil
	}
	s.sampled = flags[0]&1 != 0
	return s
}

// sampler decides which traces are sent. The zero sampler sends none.
type sampler struct {
	parentBased bool    // a parent's decision holds
	ratio       float64 // of the traces that have no such parent, from 0 to 1
}

func parseSampler(name, arg string) (sampler, error) {
	s := sampler{parentBased: name == "" || strings.HasPrefix(name, "parentbased_")}
	switch strings.TrimPrefix(name, "parentbased_") {
	case "", "always_on":
		s.ratio = 1
	case "always_off":
	case "traceidratio":
		s.ratio = 1
		if arg != "" {
			ratio, err := strconv.ParseFloat(arg, 64)
			if err != nil || !(ratio >= 0 && ratio <= 1) {
				return s, fault.New(fault.Config, "OTEL_TRACES_SAMPLER_ARG: %q is not a number from 0 to 1", arg)
			}
			s.ratio = ratio
		}
	default:
		return s, fault.New(fault.Config, "OTEL_TRACES_SAMPLER: %q is not one of always_on, always_off, traceidratio and the same after parentbased_", name)
	}
	return s, nil
}

// sample reports whether a trace is sent. All programs that take part in a trace decide
// alike, because the id decides.
func (s sampler) sample(trace [16]byte, parent *span) bool {
	if s.parentBased && parent != nil {
		return parent.sampled
	}
	return float64(binary.BigEndian.Uint64(trace[8:])>>1) < s.ratio*(1<<63)
}
