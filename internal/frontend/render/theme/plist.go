package theme

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	maxFile  = 8 << 20 // bytes of a theme
	maxDepth = 32      // dictionaries and arrays within each other
)

// dict is a dictionary of a property list. Its values are string, []any, dict and bool;
// numbers, dates and data are strings.
type dict map[string]any

// parsePlist reads an XML property list.
func parsePlist(data []byte) (any, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("larger than %d MB", maxFile>>20)
	}
	p := plist{d: xml.NewDecoder(bytes.NewReader(data))}
	p.d.Strict = true
	p.d.Entity = map[string]string{}
	p.d.CharsetReader = func(charset string, in io.Reader) (io.Reader, error) {
		if strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "us-ascii") {
			return in, nil
		}
		return nil, fmt.Errorf("character set %s is not supported", charset)
	}
	start, err := p.next()
	if err != nil {
		return nil, err
	}
	if start.Name.Local != "plist" {
		return nil, fmt.Errorf("begins with <%s>, not <plist>", start.Name.Local)
	}
	if start, err = p.next(); err != nil {
		return nil, err
	}
	v, err := p.value(start, 0)
	if err != nil {
		return nil, p.at(err)
	}
	for { // the rest must be well formed
		if _, err := p.d.Token(); errors.Is(err, io.EOF) {
			return v, nil
		} else if err != nil {
			return nil, p.at(err)
		}
	}
}

type plist struct{ d *xml.Decoder }

// at says in which line an error was found.
func (p *plist) at(err error) error {
	if _, ok := errors.AsType[*xml.SyntaxError](err); ok {
		return err // says it
	}
	line, _ := p.d.InputPos()
	return fmt.Errorf("line %d: %w", line, err)
}

// errEnd says that an element ends.
var errEnd = errors.New("an element ends too early")

// token returns the next token.
func (p *plist) token() (xml.Token, error) {
	t, err := p.d.Token()
	if errors.Is(err, io.EOF) {
		err = errors.New("the file ends too early")
	}
	return t, err
}

// next returns the next element that begins, errEnd if one ends before.
func (p *plist) next() (xml.StartElement, error) {
	for {
		t, err := p.token()
		if err != nil {
			return xml.StartElement{}, err
		}
		switch t := t.(type) {
		case xml.StartElement:
			return t, nil
		case xml.EndElement:
			return xml.StartElement{}, errEnd
		}
	}
}

// value reads the element that has begun.
func (p *plist) value(start xml.StartElement, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errors.New("nested too deeply")
	}
	switch start.Name.Local {
	case "dict":
		return p.dict(depth)
	case "array":
		list := []any{}
		err := p.children(func(start xml.StartElement) error {
			v, err := p.value(start, depth+1)
			list = append(list, v)
			return err
		})
		return list, err
	case "true", "false":
		return start.Name.Local == "true", p.d.Skip()
	case "string", "integer", "real", "date", "data":
		return p.text()
	}
	return nil, fmt.Errorf("<%s> is not part of a property list", start.Name.Local)
}

// children calls read for each element up to the end of the one that has begun.
func (p *plist) children(read func(start xml.StartElement) error) error {
	for {
		start, err := p.next()
		if errors.Is(err, errEnd) {
			return nil
		}
		if err == nil {
			err = read(start)
		}
		if err != nil {
			return err
		}
	}
}

func (p *plist) dict(depth int) (dict, error) {
	d := dict{}
	err := p.children(func(start xml.StartElement) error {
		if start.Name.Local != "key" {
			return fmt.Errorf("<%s> where a <key> is expected", start.Name.Local)
		}
		key, err := p.text()
		if err != nil {
			return err
		}
		if start, err = p.next(); errors.Is(err, errEnd) {
			return fmt.Errorf("key %q has no value", key)
		}
		if err == nil {
			d[key], err = p.value(start, depth+1)
		}
		return err
	})
	return d, err
}

// text reads the text of an element up to its end.
func (p *plist) text() (string, error) {
	var b strings.Builder
	for {
		t, err := p.token()
		if err != nil {
			return "", err
		}
		switch t := t.(type) {
		case xml.CharData:
			b.Write(t)
		case xml.StartElement:
			return "", fmt.Errorf("<%s> within text", t.Name.Local)
		case xml.EndElement:
			return b.String(), nil
		}
	}
}
