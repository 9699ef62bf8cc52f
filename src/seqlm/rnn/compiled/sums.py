"""The gradients of parameters: sums over all steps and lanes of a minibatch, each in one order.

Each member of a team takes some rows or columns of the sums, when all lanes have gone back.
"""

from seqlm.rnn.compiled.compiling import START, inner, spliced
from seqlm.rnn.compiled.forward import Tokens
from seqlm.rnn.compiled.parameters import Flat, is_one_hot, matrix_at, matrix_of_gate, num_inputs_of, output_matrix
from seqlm.rnn.compiled.products import Matrix, Panels, copy_out, outer_product
from seqlm.rnn.compiled.team import share
from seqlm.rnn.compiled.tiles import ROWS, WIDTH
from seqlm.rnn.compiled.work import Work


@spliced
def sum_up_outputs(work: Work, member: int, size: int) -> None:
    """Set a member's share of the gradients of the output layer (8.7.12)."""
    form, lanes = work.form, work.inputs.shape[1]
    _sum_up_matrix(
        work, output_matrix(form, work.gradients), work.scores, work.outputs[len(form.layers) - 1], lanes, member, size
    )
    first, last = share(work.scores.shape[0], 1, member, size)
    _sum_up_rows(work.scores, first, last, work.gradients[form.output_bias : form.output_bias + form.vocab_size])


@inner
def sum_up_layer(work: Work, layer: int, member: int, size: int) -> None:
    """Set a member's share of the gradients of a layer (8.7.15), (8.7.16)."""
    form, lanes, panels, units = work.form, work.inputs.shape[1], work.states.shape[1], work.form.num_hiddens
    matrix_start, recurrent_start, bias_start, state_bias_start = form.layers[layer]
    inputs, input_row = work.embedded, START
    if layer > 0:
        inputs, input_row = work.outputs[layer - 1], lanes
    first, last = share(panels, 1, member, size)
    for gate in range(len(form.input_blocks)):
        block = form.input_blocks[gate] * panels
        deltas = work.gates[layer][block : block + panels]
        matrix = matrix_of_gate(form, work.gradients, matrix_start, num_inputs_of(form, layer), gate)
        if is_one_hot(form, layer):
            # The table has served for this minibatch, and gives the room.
            table = work.packed.table[block : block + panels]
            _sum_up_tokens(work.inputs, deltas, table, first, last)
            copy_out(table, matrix, not form.has_input_rows, first, last)
            deltas = table
        else:
            _sum_up_matrix(work, matrix, deltas, inputs, input_row, member, size)
        bias = work.gradients[bias_start + gate * units : bias_start + (gate + 1) * units]
        _sum_up_rows(deltas, first, last, bias)

        state_block = (form.first_state_block + form.state_blocks[gate]) * panels
        deltas = work.gates[layer][state_block : state_block + panels]
        matrix = matrix_of_gate(form, work.gradients, recurrent_start, units, gate)
        _sum_up_matrix(work, matrix, deltas, work.states[layer], START, member, size)
        if state_bias_start >= 0:
            state_bias = work.gradients[state_bias_start + gate * units : state_bias_start + (gate + 1) * units]
            if state_block == block:
                for unit in range(first * WIDTH, min(last * WIDTH, units)):
                    state_bias[unit] = bias[unit]
            else:
                _sum_up_rows(deltas, first, last, state_bias)


@spliced
def _sum_up_matrix(
    work: Work, matrix: Matrix, deltas: Panels, inputs: Panels, input_row: int, member: int, size: int
) -> None:
    """Set a member's share of a matrix of gradients: the sum of all rows' gradients by sums times inputs."""
    first, last = share(matrix.shape[0], ROWS, member, size)
    num_terms, room = work.scores.shape[1], work.sums[member]
    if work.form.has_input_rows:
        outer_product(matrix, first, last, inputs, input_row, deltas, START, num_terms, room)
    else:
        outer_product(matrix, first, last, deltas, START, inputs, input_row, num_terms, room)


@inner
def _sum_up_rows(panels: Panels, first: int, last: int, sums: Flat) -> None:
    """Set ``sums`` to the sums of the columns of panels ``first`` to ``last``."""
    for p in range(first, last):
        width = min(WIDTH, len(sums) - p * WIDTH)
        part = sums[p * WIDTH : p * WIDTH + width]
        part[:] = 0
        for row in range(panels.shape[1]):
            for k in range(width):
                part[k] += panels[p, row, k]


@inner
def _sum_up_tokens(tokens: Tokens, deltas: Panels, sums: Panels, first: int, last: int) -> None:
    """Set panels of ``sums`` (V, h) to each token's sum of rows of ``deltas``: a one-hot vector picks a row."""
    lanes = tokens.shape[1]
    for p in range(first, last):
        sums[p] = 0
        for row in range(deltas.shape[1]):
            token = tokens[row // lanes, row % lanes]
            for k in range(WIDTH):
                sums[p, token, k] += deltas[p, row, k]


@spliced
def sum_up_embedding(work: Work, member: int, size: int) -> None:
    """Set some columns of the embedding's gradients, or add to them where they are the output layer's too."""
    form, lanes = work.form, work.inputs.shape[1]
    target = matrix_at(work.gradients, form.embedding, form.vocab_size, form.embedding_size)
    first, last = share(work.embedded.shape[0], 1, member, size)
    start, end = first * WIDTH, min(last * WIDTH, form.embedding_size)
    if form.embedding != form.outputs:
        for token in range(form.vocab_size):
            target[token, start:end] = 0
    for row in range(work.embedded.shape[1]):
        token = work.inputs[row // lanes, row % lanes]
        for p in range(first, last):
            for k in range(min(WIDTH, end - p * WIDTH)):
                target[token, p * WIDTH + k] += work.embedding_slopes[p, row, k]
