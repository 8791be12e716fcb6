package line

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"
)

// key is something the user typed. One of the fields is empty.
type key struct {
	text  string // characters to insert, without control characters
	name  string // a key that is not text, such as "ctrl+left", "alt+b" or "enter"
	paste bool   // text was pasted, and may have tabs and line feeds
}

// decoder makes keys of the bytes that a terminal sends. It understands what the decoder of
// ultraviolet does, in pieces that are cut here, so that nothing of a sequence that is damaged or not
// finished becomes text, and nothing of what is pasted becomes a key.
type decoder struct {
	buf     []byte
	pasting bool
	pasted  []byte
	events  uv.EventDecoder
	focus   func(has bool) // see [Options]; may be nil
}

const (
	escape     = 0x1b
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"

	// maxSequence is how many bytes of a control sequence, and maxString of a control string, are
	// waited for. What is longer is dropped.
	maxSequence = 128
	maxString   = 1 << 16
)

// add takes bytes of the terminal.
func (d *decoder) add(b []byte) { d.buf = append(d.buf, b...) }

// waits reports whether bytes are left that may be the beginning of a key.
func (d *decoder) waits() bool { return len(d.buf) > 0 && !d.pasting }

// next returns the next key. It returns false if there is none, or only the beginning of one; late
// says that its rest will not come.
func (d *decoder) next(late bool) (key, bool) {
	for len(d.buf) > 0 {
		if d.pasting {
			return d.paste()
		}
		if text := textRun(d.buf); text > 0 {
			k := key{text: string(d.buf[:text])}
			d.drop(text)
			return k, true
		}
		n := sequence(d.buf)
		if n == 0 {
			if !late {
				return key{}, false
			}
			n = len(d.buf)
			if d.buf[0] == escape && n > 2 {
				n = 2 // Alt and a key that also begins a sequence; the rest was typed
			}
		}
		seq := d.buf[:n]
		if string(seq) == pasteBegin {
			d.pasting = true
			d.drop(n)
			continue
		}
		k, ok := d.name(seq)
		d.drop(n)
		if ok {
			return k, true
		}
	}
	return key{}, false
}

func (d *decoder) drop(n int) {
	d.buf = d.buf[n:]
	if len(d.buf) == 0 {
		d.buf = nil
	}
}

// paste returns what is pasted once its end has come.
func (d *decoder) paste() (key, bool) {
	// The end may be cut, so a part of what was looked at before is looked at again.
	from := max(0, len(d.pasted)-len(pasteEnd))
	d.pasted = append(d.pasted, d.buf...)
	d.buf = nil
	at := bytes.Index(d.pasted[from:], []byte(pasteEnd))
	if at < 0 {
		return key{}, false
	}
	text := d.pasted[:from+at]
	d.buf = append(d.buf, d.pasted[from+at+len(pasteEnd):]...)
	d.pasting, d.pasted = false, nil
	return key{text: plain(string(text)), paste: true}, true
}

// plain returns s with the line ends of Unix and without control characters other than tab and line
// feed, and without what is not UTF-8.
func plain(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}

// textRun returns how many bytes at the beginning of b are whole characters that are not control
// characters.
func textRun(b []byte) int {
	n := 0
	for n < len(b) {
		r, size := utf8.DecodeRune(b[n:])
		if r == utf8.RuneError && size <= 1 || unicode.IsControl(r) {
			break
		}
		n += size
	}
	return n
}

// sequence returns the length of the first sequence or control character of b, which is not empty,
// or 0 if b has only its beginning.
func sequence(b []byte) int {
	switch {
	case b[0] >= utf8.RuneSelf:
		if !utf8.FullRune(b) {
			return 0
		}
		_, n := utf8.DecodeRune(b)
		return n
	case b[0] != escape:
		return 1
	case len(b) == 1:
		return 0
	}
	switch b[1] {
	case escape: // Alt and another sequence, or the key itself before one
		if len(b) == 2 {
			return 0
		}
		if b[2] != '[' && b[2] != 'O' {
			return 1
		}
		if n := sequence(b[1:]); n > 0 {
			return n + 1
		}
		return 0
	case '[':
		return controlSequence(b)
	case 'O':
		return functionKey(b)
	case 'P', ']', '_', '^', 'X':
		return controlString(b)
	}
	if n := sequence(b[1:]); n > 0 { // Alt and a character
		return n + 1
	}
	return 0
}

// controlSequence returns the length of CSI, parameters and a final byte. If a byte of another kind
// comes before the final one, the sequence ends there.
func controlSequence(b []byte) int {
	n := 2
	if len(b) > 2 && b[2] == '[' { // function keys of the Linux console
		if len(b) == 3 {
			return 0
		}
		return 4
	}
	for ; n < len(b) && n < maxSequence; n++ {
		switch c := b[n]; {
		case c >= 0x40 && c <= 0x7e:
			return n + 1
		case c < 0x20 || c > 0x3f:
			return n
		}
	}
	if n == maxSequence {
		return n
	}
	return 0
}

// functionKey returns the length of SS3, digits and one byte.
func functionKey(b []byte) int {
	n := 2
	for n < len(b) && n < maxSequence && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	switch {
	case n == len(b):
		return 0
	case b[n] < 0x21 || b[n] > 0x7e:
		return n
	}
	return n + 1
}

// controlString returns the length of DCS, OSC, APC, PM or SOS and what follows until the string's end.
func controlString(b []byte) int {
	for n := 2; n < len(b); n++ {
		switch b[n] {
		case 0x07, 0x18, 0x1a: // BEL, CAN, SUB
			return n + 1
		case escape:
			if n+1 == len(b) {
				return 0
			}
			if b[n+1] == '\\' {
				return n + 2
			}
			return n
		}
	}
	if len(b) >= maxString {
		return len(b)
	}
	return 0
}

// locks are states of the keyboard that do not make another key.
const locks = uv.ModCapsLock | uv.ModNumLock | uv.ModScrollLock

// name returns the key that sends seq. It returns false for what is not a key: answers of the terminal,
// mouse events, releases, damaged sequences.
func (d *decoder) name(seq []byte) (key, bool) {
	// What is too long is not a key. Keys of Windows' own mode, which is not switched on, can be
	// repeated 65,535 times by one sequence.
	if len(seq) > maxSequence || len(seq) > 2 && seq[len(seq)-1] == '_' {
		return key{}, false
	}
	n, event := d.events.Decode(bytes.Clone(seq))
	if several, ok := event.(uv.MultiEvent); ok && len(several) > 0 {
		event = several[0] // a function key, or where the cursor is: nothing asks for that
	}
	switch event.(type) {
	case uv.FocusEvent, uv.BlurEvent:
		if _, has := event.(uv.FocusEvent); d.focus != nil {
			d.focus(has)
		}
	}
	press, ok := event.(uv.KeyPressEvent)
	if !ok || n != len(seq) {
		return key{}, false
	}
	k := uv.Key(press)
	k.Mod &^= locks
	if k.Text != "" && k.Mod&^uv.ModShift == 0 {
		text := plain(k.Text)
		return key{text: text}, text != ""
	}
	if k.Code < utf8.RuneSelf || k.Code > uv.KeyExtended {
		k.BaseCode = 0 // only letters of other alphabets are called by their place
	}
	if k.Mod&^uv.ModShift == 0 && k.Code == uv.KeyBackspace {
		k.Mod = 0
	}
	name := k.Keystroke()
	return key{name: name}, name != ""
}
