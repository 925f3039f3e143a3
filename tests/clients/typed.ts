// What the compiler must know, and what it must refuse.
import { Joinery, type Preview, type Source, type TypedEvent } from 'joinery-client'

export async function checks(client: Joinery, event: TypedEvent): Promise<void> {
  const preview: Preview = await client.sources.create({ name: 'a', kind: 'file' }, { explain: true })
  const source: Source = await client.sources.create({ name: 'a', kind: 'file' })
  // @ts-expect-error a kind that there is none of
  await client.sources.create({ name: 'a', kind: 'sofa' })
  // @ts-expect-error the version is missing
  await client.sources.update(source.id, { name: 'b' })
  // @ts-expect-error a preview is no source
  const wrong: Source = preview
  if (event.type === 'offer.changed') event.data.facets.includes('price')
  // @ts-expect-error only changed offers have facets
  if (event.type === 'source.degraded') event.data.facets
  // @ts-expect-error no such filter
  client.products.list({ colour: 'oak' })
  void wrong
}
