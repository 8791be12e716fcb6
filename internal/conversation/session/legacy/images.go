package legacy

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"
)

// images are the long data: URLs of a file. Parsing megabytes of them as YAML would
// take seconds, and exceed what is parsed at all, so short names replace them meanwhile.
type images struct {
	prefix string
	urls   []string
}

// longImage is the size, in bytes, from which a URL is taken out.
const longImage = 1024

// takeImages replaces the values of lines like "url: data:image/png;base64,iVBOR...".
func takeImages(src []byte) ([]byte, *images) {
	if len(src) < longImage || !bytes.Contains(src, []byte("url:")) {
		return src, &images{}
	}
	taken := &images{prefix: "image-" + rand.Text() + "-"}
	var b bytes.Buffer
	for line := range bytes.Lines(src) {
		if len(line) >= longImage {
			line = taken.take(line)
		}
		b.Write(line)
	}
	return b.Bytes(), taken
}

func (t *images) take(line []byte) []byte {
	key, rest, ok := bytes.Cut(line, []byte("url: "))
	if !ok || len(bytes.Trim(key, " -")) > 0 {
		return line
	}
	text := strings.TrimRight(string(rest), " \r\n")
	url := text
	if n := len(url); n >= 2 && (url[0] == '"' || url[0] == '\'') && url[n-1] == url[0] {
		url = url[1 : n-1]
	}
	if !strings.HasPrefix(url, "data:") || strings.ContainsAny(url, " \\\"'#") {
		return line
	}
	t.urls = append(t.urls, url)
	// Quoted or not, the name stands where the URL stood.
	name := strings.Replace(text, url, fmt.Sprintf("%s%d.", t.prefix, len(t.urls)-1), 1)
	return append(append(bytes.Clone(line[:len(key)]), "url: "...), name+"\n"...)
}

// restore puts the URLs back into text.
func (t *images) restore(text string) string {
	if t.prefix == "" || !strings.Contains(text, t.prefix) {
		return text
	}
	for i, url := range t.urls {
		text = strings.ReplaceAll(text, fmt.Sprintf("%s%d.", t.prefix, i), url)
	}
	return text
}
