package writer

import "context"

// PublishAll publishes runs in the folder to; row makes the Parquet file with a run's row of the table runs. It
// returns the total of files, and how many runs had been published before.
func PublishAll(ctx context.Context, runs []Info, to string,
	row func(ctx context.Context, run Info) ([]byte, error)) (files Published, before int, err error) {
	for _, r := range runs {
		if err := ctx.Err(); err != nil {
			return files, before, err
		}
		data, err := row(ctx, r)
		if err != nil {
			return files, before, err
		}
		p, err := Publish(r.Dir, r.Name, to, data)
		if err != nil {
			return files, before, err
		}
		if p == (Published{}) {
			before++
		}
		files.Linked, files.Copied = files.Linked+p.Linked, files.Copied+p.Copied
	}
	return files, before, nil
}
