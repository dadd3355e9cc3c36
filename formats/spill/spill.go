// Package spill keeps what comes for many ranks in turn, until it is needed one rank after another: in one temporary
// file, as there may be more ranks than files may be open.
package spill

import (
	"bufio"
	"errors"
	"io"
	"os"
)

// File keeps the text of each rank.
type File struct {
	file  *os.File
	out   *bufio.Writer
	at    int64
	ranks []rank
}

type rank struct {
	pieces []piece
	bytes  int64
}

// piece is a piece of the temporary file.
type piece struct{ at, bytes int64 }

// Create makes a temporary file for the text of this many ranks.
func Create(ranks int32) (*File, error) {
	f, err := os.CreateTemp("", "commq-spill")
	if err != nil {
		return nil, err
	}
	return &File{file: f, out: bufio.NewWriterSize(f, 1<<20), ranks: make([]rank, ranks)}, nil
}

// Close removes the temporary file.
func (s *File) Close() error { return errors.Join(s.file.Close(), os.Remove(s.file.Name())) }

// Append adds text to that of a rank.
func (s *File) Append(rank int32, text []byte) error {
	r := &s.ranks[rank]
	n := int64(len(text))
	if k := len(r.pieces) - 1; k >= 0 && r.pieces[k].at+r.pieces[k].bytes == s.at {
		r.pieces[k].bytes += n
	} else {
		r.pieces = append(r.pieces, piece{s.at, n})
	}
	s.at += n
	r.bytes += n
	_, err := s.out.Write(text)
	return err
}

// Bytes returns the length of a rank's text.
func (s *File) Bytes(rank int32) int64 { return s.ranks[rank].bytes }

// CopyTo writes the text of a rank to w.
func (s *File) CopyTo(rank int32, w io.Writer) error {
	if err := s.out.Flush(); err != nil {
		return err
	}
	for _, p := range s.ranks[rank].pieces {
		if _, err := io.Copy(w, io.NewSectionReader(s.file, p.at, p.bytes)); err != nil {
			return err
		}
	}
	return nil
}

// Flush writes what Append holds back. Readers see what was appended before it.
func (s *File) Flush() error { return s.out.Flush() }

// Reader returns a reader of the text of a rank. Several may read at once.
func (s *File) Reader(rank int32) io.Reader {
	return &reader{file: s.file, pieces: s.ranks[rank].pieces}
}

// reader reads pieces one after another.
type reader struct {
	file   *os.File
	pieces []piece
	read   int64 // of the first piece
}

// Read reads from the current piece.
func (r *reader) Read(p []byte) (int, error) {
	if len(r.pieces) == 0 {
		return 0, io.EOF
	}
	now := r.pieces[0]
	n, err := r.file.ReadAt(p[:min(int64(len(p)), now.bytes-r.read)], now.at+r.read)
	if r.read += int64(n); r.read == now.bytes {
		r.pieces, r.read = r.pieces[1:], 0
	}
	return n, err
}
