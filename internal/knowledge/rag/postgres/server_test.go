package postgres_test

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"loki/internal/base/process"
	"loki/internal/base/process/npmtest"
	"loki/internal/service/postgres/postgrestest"
)

// pglite starts PostgreSQL with pgvector, compiled for JavaScript, and returns its address. All of its
// connections share one session, with its locks and prepared statements.
func pglite(t testing.TB) string {
	t.Helper()
	port := freePort(t)
	s, err := process.Start(process.Command{
		Path: "node",
		Dir:  filepath.Join(npmtest.Install(t, "testdata/server"), "@electric-sql", "pglite-socket", "dist", "scripts"),
		Args: []string{"server.js", "--port=" + port, "--max-connections=500", "--extensions=@electric-sql/pglite-pgvector:vector"},
		Env:  []string{"PATH=" + os.Getenv("PATH")},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	lines := bufio.NewScanner(s.Stdout())
	for lines.Scan() {
		if strings.Contains(lines.Text(), "listening") {
			return "postgres://postgres:secret@127.0.0.1:" + port + "/postgres?sslmode=disable&default_query_exec_mode=simple_protocol"
		}
	}
	t.Fatalf("the server ended: %v", s.Outcome())
	return ""
}

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// shim does what the store needs of pgvector, on a server without it.
const shim = `
CREATE DOMAIN public.vector AS real[];
CREATE FUNCTION public.negative_product(real[], real[]) RETURNS double precision IMMUTABLE STRICT LANGUAGE sql
	AS $$ SELECT -sum(a::double precision * b) FROM unnest($1, $2) AS u (a, b) $$;
CREATE OPERATOR public.<#> (LEFTARG = real[], RIGHTARG = real[], FUNCTION = public.negative_product);`

// installed starts the PostgreSQL of this machine and returns the address of a database and a function that
// stops the server at once.
func installed(t testing.TB) (address string, stop func()) {
	t.Helper()
	server := postgrestest.Start(t)
	address = server.Database(t)
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var vectors bool
	if err := conn.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector')`).Scan(&vectors); err != nil {
		t.Fatal(err)
	}
	if !vectors {
		if _, err := conn.PgConn().Exec(t.Context(), shim).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	return address, func() { server.Stop(t) }
}
