package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"loki/internal/process"
	"loki/internal/tool"
	"loki/internal/tool/builtin/sqlite"
	"loki/internal/tool/builtin/sqltext"
)

func (b *base) executeSQLCode() tool.Tool {
	params := []param{{name: "code", kind: "string", description: "The SQL to run, one or more statements."}}
	return &guardedTool{
		native: native{
			name:        "execute_sql_code",
			description: "Run SQL on the user's database and return the rows of each statement.",
			params:      params,
			hints:       tool.Hints{Destructive: true, Timeout: b.CommandTimeout},
			run: run(params, func(ctx context.Context, args codeArgs, call tool.Call) (tool.Result, error) {
				dsn, err := b.need("USQL_DSN")
				if err != nil {
					return tool.Result{}, err
				}
				if db, ok := sqlite.Parse(dsn[0]); ok {
					return b.sqliteQuery(ctx, db, args.Code)
				}
				return b.usql(ctx, call, dsn[0], args.Code)
			}),
		},
		consent: consent(params, func(args codeArgs) (string, error) {
			if sqltext.ReadOnly(args.Code, dialect(b.Getenv("USQL_DSN"))) {
				return "", nil
			}
			return "Run this SQL?\n\n" + numbered(args.Code), nil
		}),
	}
}

func dialect(dsn string) sqltext.Dialect {
	if _, ok := sqlite.Parse(dsn); ok {
		return sqltext.SQLite
	}
	return sqltext.Unknown
}

// sqliteQuery runs SQL on a file of SQLite, without any program.
func (b *base) sqliteQuery(ctx context.Context, db sqlite.Database, code string) (tool.Result, error) {
	if !db.Memory() {
		p, err := b.root.Resolve(db.File)
		if err != nil {
			return tool.Result{}, err
		}
		db.File = p.Abs
	}
	db.ReadOnly = sqltext.ReadOnly(code, sqltext.SQLite)
	if db.ReadOnly && !db.Memory() {
		if _, err := os.Stat(db.File); err != nil {
			return tool.Result{}, fmt.Errorf("there is no database at %s", db.File)
		}
	}
	out, err := db.Run(ctx, sqltext.Split(code, sqltext.SQLite))
	return tool.Result{Output: out}, err
}

// usql runs SQL with the usql program, for databases of all other kinds.
func (b *base) usql(ctx context.Context, call tool.Call, dsn, code string) (tool.Result, error) {
	path, err := b.look("usql")
	if err != nil {
		return tool.Result{}, errors.New("this database needs the program usql, which is not installed on the user's computer (see https://github.com/xo/usql). SQLite databases (USQL_DSN=sqlite:FILE) need no program")
	}
	if path, err = filepath.Abs(path); err != nil {
		return tool.Result{}, err
	}
	// No start-up file, no question for a password.
	r, err := b.program(ctx, call, confiner{}, process.Command{Path: path, Args: []string{"-X", "-w", "-q", "-c", code, dsn}}, map[string]string{})
	r.Output, r.Stderr = hide(r.Output, dsn), hide(r.Stderr, dsn)
	return r, err
}

// hide removes a database address, which can hold a password, from the output.
func hide(text, dsn string) string { return strings.ReplaceAll(text, dsn, "USQL_DSN") }
