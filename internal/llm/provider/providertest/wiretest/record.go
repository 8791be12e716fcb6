package wiretest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// outVariable is the variable that names the directory for recorded requests.
const outVariable = "LOKI_WIRE_OUT"

// Record writes a request as an object of api, url and body to the first free
// <provider>-<n>.json in the directory that LOKI_WIRE_OUT names, if it is set. A body that
// is not JSON is written as a string.
func Record(provider, api, url string, body []byte) error {
	dir := os.Getenv(outVariable)
	if dir == "" {
		return nil
	}
	var sent any = string(body)
	if json.Valid(body) {
		sent = json.RawMessage(body)
	}
	data, err := json.MarshalIndent(struct {
		API  string `json:"api"`
		URL  string `json:"url"`
		Body any    `json:"body"`
	}{api, url, sent}, "", "  ")
	if err != nil {
		return err
	}
	// Packages are tested side by side, so the file itself has to decide who has
	// which number.
	for n := 1; ; n++ {
		file := filepath.Join(dir, fmt.Sprintf("%s-%d.json", provider, n))
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if os.IsExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = f.Write(append(data, '\n'))
		if closed := f.Close(); err == nil {
			err = closed
		}
		return err
	}
}
