package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"loki/internal/service/postgres"
)

// Move copies what the desk of one server kept in the files in dir, and the key of its links in the file at path, into a database that
// servers share. What is there already stays.
func Move(ctx context.Context, db *postgres.DB, dir, path string) error {
	tables := sharedTables(db)
	key, err := os.ReadFile(path)
	if err == nil {
		_, err = tables.Exec(ctx, `INSERT INTO loki.keys (name, value) VALUES ('links', $1) ON CONFLICT DO NOTHING`, key)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	from := &files{dir: dir}
	for sub, due := range map[string]string{"": "now()", restedDir: "NULL"} {
		runs, err := from.list(sub)
		if err != nil {
			return err
		}
		for _, run := range runs {
			f, err := from.read(run)
			if err != nil {
				return err
			}
			doc, err := json.Marshal(f)
			if err != nil {
				return err
			}
			if _, err := tables.Exec(ctx, `INSERT INTO loki.webhooks (run, doc, due) VALUES ($1, $2, `+due+`) ON CONFLICT DO NOTHING`, run, doc); err != nil {
				return err
			}
		}
	}
	return nil
}
