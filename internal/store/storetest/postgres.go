// Package storetest gives tests a database on a PostgreSQL server: a schema each.
//
// It starts a scratch server where the programs of one are installed, once for each test
// binary, which ends with the binary, however that ends.
//
// Start at [Main].
package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// The variables of the environment that tests look at.
const (
	// Server is the URL of a server to use; each test makes a schema in it and drops it.
	Server = "METIER_TEST_POSTGRES"
	// Need, if set, makes a test fail that finds no server, where it would be skipped.
	Need = "METIER_TEST_NEED_POSTGRES"
)

// Main runs the tests of a package that ask for [Postgres], with a server for all of them
// unless the environment names one. It returns the exit code.
func Main(m *testing.M) int {
	if os.Getenv(Server) != "" {
		return m.Run()
	}
	url, stop, err := Start(false)
	if err == nil {
		err = os.Setenv(Server, url)
	}
	if err != nil && !errors.Is(err, ErrNone) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Start starts a scratch server and returns its URL. Durable has it wait for the disk, as
// a real one does. It fails with [ErrNone] where there is nothing to start; stop is to be
// called in any case.
func Start(durable bool) (url string, stop func() error, err error) {
	c := &cluster{durable: durable}
	url, err = c.start()
	return url, c.stop, err
}

// ErrNone: there is no server and nothing to start one with.
var ErrNone = errors.New("no PostgreSQL server: install Debian's package postgresql, or name one by " + Server)

// Postgres names a new, empty schema for the test, whose connections have its name.
// Without a server the test is skipped.
func Postgres(t testing.TB) string {
	t.Helper()
	server := os.Getenv(Server)
	if server == "" {
		if os.Getenv(Need) != "" {
			t.Fatal(ErrNone)
		}
		t.Skip(ErrNone)
	}
	schema := "test_" + strings.ToLower(rand.Text())
	run(t, server, "CREATE SCHEMA "+schema)
	t.Cleanup(func() { run(t, server, "DROP SCHEMA "+schema+" CASCADE") })
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", schema)
	q.Set("application_name", schema)
	u.RawQuery = q.Encode()
	return u.String()
}

func run(t testing.TB, server, statement string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Fatal(err)
	}
}

// cluster is a scratch server.
type cluster struct {
	durable bool
	dir     string
	stdin   io.Closer
	cmd     *exec.Cmd
}

func (c *cluster) start() (string, error) {
	bin, err := programs()
	if err != nil {
		return "", err
	}
	if c.dir, err = os.MkdirTemp("", "pg"); err != nil {
		return "", err
	}
	if err := prepareDir(c.dir); err != nil {
		return "", err
	}
	data := filepath.Join(c.dir, "data")
	init := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "metier", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	unprivileged(init)
	if out, err := init.CombinedOutput(); err != nil {
		return "", fmt.Errorf("initdb: %w\n%s", err, out)
	}
	if err := c.serve(filepath.Join(bin, "postgres"), data); err != nil {
		return "", err
	}
	return "postgres:///postgres?user=metier&host=" + url.QueryEscape(c.dir), c.await(data)
}

// serve starts the server behind a shell that ends it when this process is gone: its
// standard input closes then.
func (c *cluster) serve(postgres, data string) error {
	fsync := "off"
	if c.durable {
		fsync = "on"
	}
	log, err := os.Create(filepath.Join(c.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	c.cmd = exec.Command("sh", "-c", `"$@" & server=$!; cat >/dev/null; kill -INT $server; wait $server`, "sh",
		postgres, "-D", data, "-c", "listen_addresses=", "-c", "unix_socket_directories="+c.dir,
		"-c", "fsync="+fsync, "-c", "max_connections=200")
	c.cmd.Stdout, c.cmd.Stderr = log, log
	unprivileged(c.cmd)
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return err
	}
	return c.cmd.Start()
}

// await waits until the server says in its file that it is ready.
func (c *cluster) await(data string) error {
	limit := time.Now().Add(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		b, _ := os.ReadFile(filepath.Join(data, "postmaster.pid")) // not there yet
		if lines := strings.Split(string(b), "\n"); len(lines) > 7 && strings.TrimSpace(lines[7]) == "ready" {
			return nil
		}
		if time.Now().After(limit) {
			break
		}
	}
	log, _ := os.ReadFile(filepath.Join(c.dir, "log")) // only to say more
	return fmt.Errorf("the PostgreSQL server did not start:\n%s", log)
}

// stop ends the server, if one was started, and removes its files.
func (c *cluster) stop() error {
	var err error
	if c.cmd != nil {
		err = c.stdin.Close()
		_ = c.cmd.Wait() // ended by a signal
	}
	if c.dir == "" {
		return err
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}

// programs is the folder of the newest server's programs.
func programs() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		path, err := exec.LookPath("initdb")
		if err != nil {
			return "", ErrNone
		}
		return filepath.Dir(path), nil
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // others are older
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
}
