document.addEventListener("click",async function(event){var button=event.target.closest(".copy button");if(!button)return;
await navigator.clipboard.writeText(button.parentNode.querySelector("code").textContent);
button.textContent="Copied";setTimeout(function(){button.textContent="Copy"},1500)});
