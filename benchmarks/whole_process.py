"""From starting Python to a trained small LSTM: `seqlm.fit_network` against PyTorch's nn.LSTM, in turn, in one run.

Both programs read the same text, keep the last tenth for validation, and train the same network with AdamW for the same
number of epochs, each with its own loop. Seconds include the start of Python and all imports. The loops of seqlm are
compiled already, by a first process that does not count.

    python benchmarks/whole_process.py [--text data/sample.txt] [--epochs 5] [--rounds 7] [--threads 1 2]
"""

import argparse
import statistics
import subprocess
import sys
import time

from origin import ROOT, origin

OURS = """
import sys
from pathlib import Path
import seqlm
text, epochs, threads = Path(sys.argv[1]).read_text(), int(sys.argv[2]), int(sys.argv[3])
model = seqlm.fit_network(
    text, "lstm", num_hiddens=64, num_layers=1, dropout=0.0, num_epochs=epochs, token_budget=None, patience=None,
    batch_size=32, num_steps=32, schedule="constant", warmup_share=0.0, num_threads=threads, progress=False,
)
print(min(model.history["val_perplexity"]))
"""
PYTORCH = """
import sys
from pathlib import Path
import torch
from torch import nn
text, epochs, threads = Path(sys.argv[1]).read_text(), int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(threads)
torch.manual_seed(0)
cut = len(text) * 9 // 10
alphabet = {char: token for token, char in enumerate(sorted(set(text[:cut])), start=1)}
ids = torch.tensor([alphabet.get(char, 0) for char in text])
train, val = ids[:cut], ids[cut:]

class Network(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(size, 64), nn.LSTM(64, 64, batch_first=True)
        self.output = nn.Linear(64, size)
    def forward(self, inputs, state=None):
        hiddens, state = self.lstm(self.embedding(inputs), state)
        return self.output(hiddens).flatten(0, 1), state

network = Network(len(alphabet) + 1)
optimizer = torch.optim.AdamW(network.parameters(), lr=0.006, weight_decay=0.01)
rows = train[: (len(train) - 1) // 32 * 32 + 1]
inputs, targets = rows[:-1].view(32, -1), rows[1:].view(32, -1)
best = float("inf")
for _ in range(epochs):
    state = None
    for start in range(0, inputs.shape[1] - 31, 32):
        outputs, state = network(inputs[:, start : start + 32], state)
        loss = nn.functional.cross_entropy(outputs, targets[:, start : start + 32].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        state = tuple(part.detach() for part in state)
    with torch.no_grad():
        outputs, _ = network(val[None, :-1])
        best = min(best, float(torch.exp(nn.functional.cross_entropy(outputs, val[1:]))))
print(best)
"""
PROGRAMS = {"seqlm": OURS, "PyTorch": PYTORCH}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", default=str(ROOT / "data/sample.txt"))
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    print(origin())
    print(f"{'threads':>7} {'seqlm s':>8} {'PyTorch s':>10} {'ratio':>6}  best perplexity on the validation set")
    for threads in options.threads:
        seconds: dict[str, list[float]] = {name: [] for name in PROGRAMS}
        perplexities = {}
        for _ in range(options.rounds + 1):
            for name, program in PROGRAMS.items():
                command = [sys.executable, "-c", program, options.text, str(options.epochs), str(threads)]
                start = time.perf_counter()
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                seconds[name].append(time.perf_counter() - start)
                perplexities[name] = float(output)
        ours, theirs = (statistics.median(values[1:]) for values in seconds.values())
        found = ", ".join(f"{name} {value:.2f}" for name, value in perplexities.items())
        print(f"{threads:>7} {ours:>8.2f} {theirs:>10.2f} {theirs / ours:>6.2f}  {found}", flush=True)


if __name__ == "__main__":
    main()
