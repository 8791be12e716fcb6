package sqlite

import (
	"fmt"
	"slices"

	"loki/internal/workflow/run"
	"loki/internal/workflow/run/record"
)

// A blob is stored in pieces, for the sake of speed: what SQLite takes at once is
// copied several times into memory that its allocator gets from the system, and gives
// back, for every single copy above 16 KiB. A piece of this size, two pages less what
// SQLite needs in them, fits what the allocator keeps.
const (
	pieceSize = 8110
	maxPieces = 1 << 16
)

// blobKeeper writes the blobs of one run. known holds the ids of the ones that the run uses
// already.
type blobKeeper struct {
	run   int64
	known map[record.Hash]int64
	fresh []record.Hash // known since the transaction began, void if it fails
}

// commit and rollback tell how the transaction ended.
func (k *blobKeeper) commit() { k.fresh = k.fresh[:0] }

func (k *blobKeeper) rollback() {
	for _, h := range k.fresh {
		delete(k.known, h)
	}
	k.fresh = k.fresh[:0]
}

// put writes the blobs of documents, and notes that the run uses them.
func (k *blobKeeper) put(c *conn, docs ...record.Document) error {
	for _, d := range docs {
		for _, b := range d.Blobs {
			if _, ok := k.known[b.Hash]; ok {
				continue
			}
			id, err := k.putBlob(c, b)
			if err != nil {
				return err
			}
			k.known[b.Hash] = id
			k.fresh = append(k.fresh, b.Hash)
		}
	}
	return nil
}

// putBlob returns the id of a blob, which it writes if it is new.
func (k *blobKeeper) putBlob(c *conn, b record.Blob) (id int64, err error) {
	ok, err := c.row("SELECT id FROM blobs WHERE hash = ?", []any{b.Hash[:]}, &id)
	if err != nil {
		return 0, err
	}
	if ok {
		return id, k.share(c, id)
	}
	if len(b.Data) > pieceSize*maxPieces {
		return 0, fmt.Errorf("a text of %d bytes is too large to be recorded", len(b.Data))
	}
	res, err := c.exec("INSERT INTO blobs (hash, refs, size) VALUES (?, 1, ?)", b.Hash[:], len(b.Data))
	if err != nil {
		return 0, err
	}
	if id, err = res.LastInsertId(); err != nil {
		return 0, err
	}
	if _, err := c.exec("INSERT INTO uses (run, blob) VALUES (?, ?)", k.run, id); err != nil {
		return 0, err
	}
	piece := id * maxPieces
	for data := range slices.Chunk(b.Data, pieceSize) {
		if _, err := c.exec("INSERT INTO pieces (id, data) VALUES (?, ?)", piece, data); err != nil {
			return 0, err
		}
		piece++
	}
	return id, nil
}

// share notes that the run uses a blob that is there. It may have done so since before
// it was opened.
func (k *blobKeeper) share(c *conn, id int64) error {
	res, err := c.exec("INSERT OR IGNORE INTO uses (run, blob) VALUES (?, ?)", k.run, id)
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err == nil && n > 0 {
		_, err = c.exec("UPDATE blobs SET refs = refs + 1 WHERE id = ?", id)
	}
	return err
}

// readBlobs returns a reader of blobs that reads each once, so that values decoded
// with it share their strings.
func (s *Store) readBlobs(c *conn) record.Reader {
	show := record.Reader{Show: s.o.Unseal}
	seen := make(map[record.Hash]string)
	show.Read = func(h record.Hash) (string, error) {
		if s, ok := seen[h]; ok {
			return s, nil
		}
		s, err := readBlob(c, h)
		if err == nil {
			s = show.Text(s)
			seen[h] = s
		}
		return s, err
	}
	return show
}

// readHeads returns a reader of the beginnings of blobs, as a list needs them: of the
// texts that [run.Head] makes of them. They are not checked.
func (s *Store) readHeads(c *conn) record.Reader {
	return record.Reader{Show: s.o.Unseal, Read: func(h record.Hash) (string, error) {
		var head []byte
		ok, err := c.row("SELECT substr(p.data, 1, ?) FROM blobs b JOIN pieces p ON p.id = b.id * 65536 WHERE b.Hash = ?",
			[]any{run.HeadSize, h[:]}, &head)
		if err != nil {
			return "", err
		}
		if !ok {
			return "", record.ErrDamaged
		}
		return record.Reader{Show: s.o.Unseal}.Text(string(head)), nil
	}}
}

// seal returns what documents are sealed by.
func (s *Store) seal() record.Sealer { return s.o.Seal }

func readBlob(c *conn, h record.Hash) (string, error) {
	var id int64
	var size int
	ok, err := c.row("SELECT id, size FROM blobs WHERE hash = ?", []any{h[:]}, &id, &size)
	if err != nil {
		return "", err
	}
	if !ok || size < 0 || size > pieceSize*maxPieces {
		return "", record.ErrDamaged
	}
	data := make([]byte, 0, size)
	var piece []byte
	err = c.rows("SELECT data FROM pieces WHERE id >= ? AND id < ? ORDER BY id", []any{id * maxPieces, (id + 1) * maxPieces}, []any{&piece}, func() error {
		data = append(data, piece...)
		return nil
	})
	if err != nil {
		return "", err
	}
	if record.HashOf(data) != h {
		return "", record.ErrDamaged
	}
	return string(data), nil
}
