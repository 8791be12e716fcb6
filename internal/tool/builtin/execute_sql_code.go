package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
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
	bare, file, err := passwordFile(dsn)
	if err != nil {
		return tool.Result{}, err
	}
	set := map[string]string{}
	if file != "" {
		defer os.Remove(file)
		set["USQLPASS"] = file
	}
	// No start-up file, no question for a password.
	r, err := b.program(ctx, call, confiner{}, process.Command{Path: path, Args: []string{"-X", "-w", "-q", "-c", code, bare}}, set)
	r.Output, r.Stderr = hide(hide(r.Output, dsn), bare), hide(hide(r.Stderr, dsn), bare)
	return r, err
}

// passwordFile returns a database address without its password, and the path of a file from which usql takes that:
// the arguments of a program are readable for every user of the computer. The path is empty if the
// address has no password before its host.
func passwordFile(dsn string) (bare, file string, err error) {
	u, err := url.Parse(dsn)
	if err != nil || u.User == nil {
		return dsn, "", nil
	}
	password, ok := u.User.Password()
	if !ok {
		return dsn, "", nil
	}
	if strings.ContainsAny(password, "\r\n") {
		return "", "", errors.New("the password in USQL_DSN has a line end, which the file of passwords of usql cannot hold")
	}
	field := func(s string) string {
		return cmp.Or(strings.NewReplacer(`\`, `\\`, ":", `\:`).Replace(s), "*")
	}
	f, err := os.CreateTemp("", "loki-usqlpass-*") // readable for the user only
	if err != nil {
		return "", "", err
	}
	_, err = fmt.Fprintf(f, "*:*:*:*:%s:%s\n", field(u.User.Username()), field(password))
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(f.Name())
		return "", "", err
	}
	u.User = url.User(u.User.Username())
	return u.String(), f.Name(), nil
}

// hide removes a database address, which can hold a password, from the output.
func hide(text, dsn string) string { return strings.ReplaceAll(text, dsn, "USQL_DSN") }
